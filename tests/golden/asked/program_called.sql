FROM program_called('llama-factory', phase_id := 'lora')
UNION ALL FROM program_called('vllm', version := '0.8.3')
UNION ALL FROM program_called('no such program')
