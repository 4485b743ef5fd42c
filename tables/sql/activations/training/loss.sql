-- The loss of a training step: what it keeps for the backward pass, and what it works with at its own peak.
--
--   full     the model's own: the logits of all tokens, their fp32 log-softmax (kept), and the gradients of both
--   chunked  projection and loss for one of loss_chunks parts of the tokens at a time: the log-softmax of all is kept, the gradients are those of a chunk.
--            Engines with chunks_logits project all tokens first and let the logits go after the loss
--   fused    the gradients are taken in the forward pass, chunk by chunk: the hidden states' and the head's are kept, no logits
--
-- Units: bytes per GPU; `per_logit` macros bytes per token and column of the vocabulary. Sources: full as kept.sql;
--   chunked: torchtune's LinearCrossEntropyLoss (loss_chunks of constant.csv, not compiled), with chunks_logits its CEWithChunkedOutputLoss; fused: Liger's fused linear cross-entropy, whose chunk has as
--   many tokens that its logits are about as large as the hidden states of all, and which sums the head's gradient over an fp32 product.
-- Not covered: compiled losses, fused losses of heads that are trained under autocast (null with a reason).

-- tokens of one micro-batch on one GPU
CREATE OR REPLACE MACRO step_tokens(x) AS x.sequences::DOUBLE * x.context_tokens / x.context_parallel;

-- GPUs that divide the inside of a layer
CREATE OR REPLACE MACRO tensor_parallel(x) AS x.tensor_parallel;

-- columns of the logits; 0 where the model has no output head
CREATE OR REPLACE MACRO logit_width(m, x) AS iif(m.head_elements > 0 OR m.is_head_tied, m.vocab_size, 0) / tensor_parallel(x);

-- bytes of an element of the log-softmax, and of all that is kept per logit: the tanh of a cap; where autocast runs the log-softmax
-- in 16 bits and the loss in fp32, both
CREATE OR REPLACE MACRO loss_bytes(m, x) AS iif(m.loss_form IN ('compute', 'cast') AND x.precision <> 'amp' AND x.loss = 'full', x.compute_bytes, 4);

CREATE OR REPLACE MACRO kept_per_logit(m, x) AS CASE x.loss
    WHEN 'fused' THEN 0
    WHEN 'chunked' THEN 4
    ELSE loss_bytes(m, x) + iif(x.keeps_logits, x.compute_bytes, 0)
        + iif(m.loss_form = 'compute' AND x.precision = 'amp', 2, 0) + iif(m.has_logit_cap, x.compute_bytes, 0)
END;

CREATE OR REPLACE MACRO gradients_per_logit(m, x) AS
    iif(m.loss_form = 'compute' AND x.precision = 'amp', 4, 2 * loss_bytes(m, x));

-- logits that a loop holds beyond the loss
CREATE OR REPLACE MACRO held_logits(m, x) AS
    iif(x.keeps_logits AND x.loss = 'full', x.compute_bytes * logit_width(m, x) * step_tokens(x), 0);

-- the power of two at or above the tokens that a vocabulary's share of the hidden size leaves to a chunk
CREATE OR REPLACE MACRO fused_chunk_tokens(m, x) AS
    pow(2, ceil(log2(ceil(step_tokens(x) / ceil(logit_width(m, x) / m.hidden_size)))));

-- what a fused loss holds from the forward pass on: gradients of the hidden states and of a head that is trained
CREATE OR REPLACE MACRO kept_by_fused_loss(m, x) AS iif(x.loss = 'fused' AND logit_width(m, x) > 0,
    x.compute_bytes * m.hidden_size * step_tokens(x) + iif(x.is_adapter, 0, x.compute_bytes * m.vocab_size * m.hidden_size), 0);

-- Beside what is kept. full: the gradients of the logits in the loss's precision; or, after the loss, the logits' own gradient beside that
-- of the head. chunked: the same of one chunk, the head's gradient three times (the sum before, the second chunk's, the sum after). fused: the logits of a chunk, the
-- chunk's gradient of the head and its fp32 copy.
CREATE OR REPLACE MACRO loss_work(m, x, head_gradient) AS CASE
    WHEN logit_width(m, x) = 0 THEN 0
    WHEN x.loss = 'fused' THEN
        fused_chunk_tokens(m, x) * logit_width(m, x) * x.compute_bytes
        + iif(x.is_adapter, 0, iif(x.compute_bytes = 4, 4, 6) * m.vocab_size * m.hidden_size)
    WHEN x.loss = 'chunked' THEN logit_width(m, x) * step_tokens(x) * greatest(gradients_per_logit(m, x) / x.loss_chunks,
        -- (and before: the logits of all chunks beside the fp32 copy of the last)
        iif(x.chunks_logits, x.compute_bytes + 4 / x.loss_chunks, 0),
        3 * head_gradient / (logit_width(m, x) * step_tokens(x)) - 2 * kept_per_logit(m, x) / x.loss_chunks)
    ELSE greatest(
        gradients_per_logit(m, x) * logit_width(m, x) * step_tokens(x),
        (x.compute_bytes - loss_bytes(m, x)) * logit_width(m, x) * step_tokens(x) + head_gradient)
END;
