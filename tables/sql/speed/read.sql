-- What of its weights a model reads to write one token.
--
--   read_bytes     = Σ bytes of tensors that every token passes, routed experts × the share that a token is sent to
--   token_elements = Σ elements that every token of a prompt is multiplied with: the same without the output head,
--       which only the last one needs
--
-- A row is looked up in the embeddings, which are not read otherwise; tied to the output, they are its matrix. Towers
-- and encoders have run before the first token is written.
-- Units: bytes; elements. Source: arithmetic over tensor and model.active_parameter_count.
-- Not covered: prediction layers; experts of which nobody says how many a token passes (null).

CREATE OR REPLACE MACRO is_read_each_token(tensor_class, component) AS
    tensor_class NOT IN ('embedding', 'vision-tower', 'audio-tower', 'projector')
        AND component NOT IN ('encoder', 'vision', 'audio', 'projector', 'detector', 'tracker');

-- expert_share: how much of the routed experts one token passes. gap 'speed': writes otherwise than token by token
CREATE OR REPLACE TEMP TABLE reading_shape AS
WITH routed AS (
    SELECT model_id, coalesce(sum(element_count) FILTER (tensor_class = 'expert'), 0) AS expert_elements,
        coalesce(bool_or(starts_with(role, 'indexer')), false) AS is_sparsely_read,
        sum(element_count) FILTER (is_read_each_token(tensor_class, component)
            AND tensor_class NOT IN ('head', 'expert')) AS passed_elements,
        max(element_count) FILTER (role = 'embedding') / sum(element_count) FILTER (tensor_class = 'embedding')
            AS token_embedding_share
    FROM tensor GROUP BY model_id
),
share AS (
    SELECT routed.*, model.is_head_tied, CASE
        WHEN expert_elements = 0 THEN 0
        ELSE least(greatest(1 - (model.parameter_count - model.active_parameter_count) / expert_elements, 0), 1)
    END AS expert_share
    FROM routed JOIN model USING (model_id)
)
SELECT model_id, coalesce(is_head_tied, false) AS is_head_read_from_embeddings, expert_share, token_embedding_share,
    is_sparsely_read, floor(passed_elements + expert_elements * expert_share)::BIGINT AS token_elements,
    (SELECT min(gap.how) FROM engine_gap AS gap JOIN model ON list_contains(string_split(gap.model_types, ' '),
        model.model_type) WHERE gap.gap = 'speed' AND model.model_id = share.model_id) AS writes_otherwise
FROM share;

-- bytes of one class of one part of a model that a token reads
CREATE OR REPLACE MACRO read_share(tensor_class, component, is_tied_embedding, expert_share) AS CASE
    WHEN is_tied_embedding THEN 1
    WHEN NOT is_read_each_token(tensor_class, component) THEN 0
    WHEN tensor_class = 'expert' THEN expert_share
    ELSE 1
END;
-- null where one of them is not known; whole numbers, whose sum is the same in any order
CREATE OR REPLACE MACRO read_sum(bytes, share) AS
    iif(bool_or(share IS NULL), NULL, sum(floor(bytes * share)))::BIGINT;
