SELECT * EXCLUDE (model_name, source, locator) FROM serving_run ORDER BY ALL
