-- no card gives more than its sticker, nor less than two thirds of it in whole MiB: the least that was read, of a Mac
-- of 8 GB
SELECT gpu_id, memory_gib_nominal, capacity_bytes
FROM gpu
WHERE capacity_bytes NOT BETWEEN 0.66 * memory_gib_nominal * 1073741824 AND memory_gib_nominal * 1073741824
