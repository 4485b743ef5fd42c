SELECT model_id FROM model WHERE anatomy_grade = 'unknown' AND coalesce(anatomy_note, '') = ''
