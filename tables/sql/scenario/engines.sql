-- Engines by kind.
--
-- Units: none. Source: the table engine. Not covered: servers beyond vLLM and SGLang.

-- engines that set aside a share of the card at start
CREATE OR REPLACE MACRO is_server(scenario) AS starts_with(scenario.engine_id, 'vllm') OR scenario.engine_id = 'sglang';
