-- no card gives more than its sticker, nor less than two thirds of it (in whole MiB), which is what a Mac of 8 GB was read to give
SELECT gpu_id, memory_gib_nominal, capacity_bytes
FROM gpu
WHERE capacity_bytes NOT BETWEEN 0.66 * memory_gib_nominal * 1073741824 AND memory_gib_nominal * 1073741824
