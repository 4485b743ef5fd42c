"""What llama.cpp has set aside for a tower when it has loaded it, asked of the formula alone."""

# of models with a tower, by model_id; $1: flash or eager
SET_ASIDE = """
    SELECT model_id, tower_buffer_bytes_llama_cpp(shape_row.model.tower, {'attention': $1, 'images': 0,
        'picture_width': NULL::DOUBLE, 'picture_height': NULL::DOUBLE, 'picture_rows': NULL::DOUBLE,
        'picture_columns': NULL::DOUBLE})
    FROM shape_row
"""
