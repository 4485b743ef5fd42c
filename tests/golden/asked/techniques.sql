SELECT 1 AS place, * FROM techniques_for('h100-sxm', 'microsoft/phi-4')
UNION ALL SELECT 2, * FROM techniques_for('rtx-4090', 'allenai/OLMoE-1B-7B-0125-Instruct', context_tokens := 4096,
    sequences := 4)
UNION ALL SELECT 3, * FROM techniques_for('no-such-card', 'microsoft/phi-4')
ORDER BY ALL
