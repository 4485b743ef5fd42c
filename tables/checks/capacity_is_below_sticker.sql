-- no card gives more than its sticker, nor less than two thirds of it in whole MiB: the least that was read, of a Mac
-- of 8 GB; an AMD chip that shares it with the CPU gives half, as Linux comes
SELECT gpu_id, memory_gib_nominal, capacity_bytes
FROM gpu
WHERE capacity_bytes NOT BETWEEN
    CASE WHEN vendor = 'amd' AND segment = 'unified' THEN 0.48 ELSE 0.66 END * memory_gib_nominal * 1073741824
    AND memory_gib_nominal * 1073741824
