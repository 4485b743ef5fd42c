SELECT * EXCLUDE (model_name, source, locator) FROM training_run ORDER BY ALL
