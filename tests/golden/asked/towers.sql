-- the largest picture of each tower
SELECT model_id, tower.component AS component, largest_image_tiles, largest_image_tokens FROM tower_shape
    WHERE model_id IN (FROM golden_models) ORDER BY ALL
