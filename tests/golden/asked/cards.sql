-- what a card gives, by architecture and system, and what it is called
PRAGMA enable_optimizer;
SELECT card.*, gpu_named(card.name, card.capacity_bytes) AS by_name_and_size, gpu_named('NVIDIA ' || card.name,
    NULL) AS by_name,
    gpu_named(card.name, card.less_bytes) AS with_less, gpu_named(card.name, card.much_less_bytes) AS with_much_less
FROM (
    SELECT gpu_id, name, capacity_bytes, system_bytes(gpu, 'linux', constants) AS linux_bytes, system_bytes(gpu,
        'windows', constants) AS windows_bytes,
        (gpu.memory_gib_nominal * 1073741824 * 0.94)::BIGINT AS less_bytes,
            (gpu.memory_gib_nominal * 1073741824 * 0.7)::BIGINT AS much_less_bytes
    FROM gpu CROSS JOIN constants_row
) AS card ORDER BY ALL
