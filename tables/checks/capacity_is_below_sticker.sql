-- no card gives more than its sticker, nor less than seven tenths of it
SELECT gpu_id, memory_gib_nominal, capacity_bytes
FROM gpu
WHERE capacity_bytes NOT BETWEEN 0.7 * memory_gib_nominal * 1073741824 AND memory_gib_nominal * 1073741824
