-- The machine around the cards of a plan: CPU, main memory, disk, links and power, each by one stated rule.
--
--   server_cpu_count, training = cards of a server × (1 + loader_workers_per_gpu) + system_cpu_cores: a core for the
--       process of each card, for each worker that loads data, and a few for the system
--   server_cpu_count, serving  = 2 × copies on the server + its cards, + 1 where there are several copies: a core for
--       each process of vLLM (API server, engine, one for each card, coordinator); null for llama.cpp, which has no
--       such rule
--   server_memory_bytes, training = 2 × parameters + what offload needs: the 16-bit weights once, while they are loaded
--       or put together for a checkpoint
--   server_memory_usual_bytes  = as much as the cards of the server have: what is advised where nobody counts
--   disk_bytes, training: text, token ids of 4 bytes, the weights it starts from, and two checkpoints of 14 bytes a
--       parameter (16-bit weights, fp32 copy and two moments); of adapters the weights alone
--   network_gb_s_least: what each card sends so that it waits for nothing: ZeRO-3 6 bytes × parameters in each
--       micro-batch (4 where weights are frozen), others 4 bytes in each step, of what a copy divides each its part
--   link_gb_s_least: the same among cards that divide layers: two sums over the width forward, two backward, two more
--       where it is recomputed, each sent and fetched: 16 (24) bytes × layers × width × (cards − 1) ÷ cards a token
--   wait_ratio: how many times as long a step takes where links give less than both: within a server NVLink (half of
--       both directions) or else the bus, to others the bus and an adapter of server_network_gb_s. Where nothing is
--       known nothing waits; cards bridged in pairs count as if all were joined
--   energy_kwh_most = hours × cards × limit of their power
-- Units: cores, bytes, GB/s (10^9), kW, kWh. Source: ml-engineering-cpu, vllm-processes, zero-paper, megatron-paper,
-- pcie-rates, dgx-h100-network.
-- Not covered: what workers hold of images and sound; the CPU's own power, cooling; disks that several share.

-- the bus of a card by its generation: the newest that the generation has
CREATE OR REPLACE MACRO host_link_gb_s(card, constants) AS CASE
    WHEN card.vendor <> 'nvidia' THEN NULL
    WHEN card.architecture IN ('hopper', 'blackwell', 'blackwell-rtx') THEN constants.pcie_5_gb_s
    WHEN card.architecture IN ('ampere', 'ada') THEN constants.pcie_4_gb_s
    ELSE constants.pcie_3_gb_s
END;

CREATE OR REPLACE MACRO cards_of_server(gpu_count, constants) AS least(gpu_count, constants.server_gpu_count);

CREATE OR REPLACE MACRO training_cpu_count(gpu_count, constants) AS (cards_of_server(gpu_count, constants)
    * (1 + constants.loader_workers_per_gpu) + constants.system_cpu_cores)::BIGINT;

CREATE OR REPLACE MACRO serving_cpu_count(gpu_count, copy_gpu_count, constants) AS
    (cards_of_server(gpu_count, constants) + 2 * greatest(cards_of_server(gpu_count, constants) // copy_gpu_count, 1)
        + iif(gpu_count > copy_gpu_count, 1, 0))::BIGINT;

CREATE OR REPLACE MACRO training_memory_bytes(parameter_count, host_bytes, gpu_count, constants) AS
    (2 * parameter_count + coalesce(host_bytes, 0) * cards_of_server(gpu_count, constants))::BIGINT;

CREATE OR REPLACE MACRO usual_memory_bytes(card, gpu_count, constants) AS
    (card.memory_gib_nominal * 1024 * 1024 * 1024 * cards_of_server(gpu_count, constants))::BIGINT;

-- text_bytes: of the data once; data_tokens: once, too
CREATE OR REPLACE MACRO training_disk_bytes(phase_id, parameter_count, text_bytes, data_tokens, constants) AS
    (text_bytes + 4 * data_tokens + parameter_count * (iif(phase_id = 'pretrain', 0, 2)
        + iif(phase_id IN ('lora', 'qlora'), 0, 2 * constants.checkpoint_bytes_per_parameter)))::BIGINT;

-- step: sharding, data_parallel, tensor_parallel, pipeline_parallel, phase_id, micro_batches, step_seconds
CREATE OR REPLACE MACRO network_gb_s(step, parameter_count) AS CASE
    WHEN step.data_parallel = 1 OR step.phase_id = 'qlora' OR step.phase_id = 'lora' AND step.sharding <> 'zero3'
        THEN NULL
    WHEN step.sharding = 'zero3' THEN parameter_count * (2 + iif(step.phase_id = 'lora', 2, 4)) * step.micro_batches
    ELSE parameter_count * 4 / (step.tensor_parallel * step.pipeline_parallel)
END / step.step_seconds / 1e9;

-- step besides: tokens of a micro-batch and checkpointing; layers of a stage take part in all micro-batches of a copy
CREATE OR REPLACE MACRO link_gb_s(step, layer_count, hidden_size) AS iif(step.tensor_parallel = 1, NULL,
    iif(step.checkpointing = 'full', 24, 16)::DOUBLE * layer_count / step.pipeline_parallel * hidden_size
        * (step.tensor_parallel - 1) / step.tensor_parallel * step.micro_tokens * step.micro_batches
        / step.step_seconds / 1e9);

-- scale: server or many
CREATE OR REPLACE MACRO card_link_gb_s(card, scale, constants) AS iif(scale = 'many',
    least(coalesce(host_link_gb_s(card, constants), constants.server_network_gb_s), constants.server_network_gb_s),
    coalesce(card.nvlink_gb_s / 2, host_link_gb_s(card, constants)));

CREATE OR REPLACE MACRO wait_ratio(network_gb_s, link_gb_s, card, scale, constants) AS greatest(1,
    coalesce(network_gb_s / card_link_gb_s(card, scale, constants), 1),
    coalesce(link_gb_s / card_link_gb_s(card, 'server', constants), 1));
