FROM engine_speed ORDER BY ALL
