-- Engines by kind.
--
-- Units: none. Source: the table engine. Not covered: servers beyond vLLM and SGLang.

-- engines that set aside a share of the card at start
CREATE OR REPLACE MACRO is_server(x) AS starts_with(x.engine_id, 'vllm') OR x.engine_id = 'sglang';
