// Plans by the formulas: likely speeds, how long a training takes, what each technique saves, and the machine around. Every rule is a macro
// of tables/sql/plans and tables/sql/speed, translated; here they are asked one after the other.
const search = new URL(import.meta.url).search;
const r = await import(`./reckon.js${search}`);
const { macros: m, shared } = r;
const constants = shared.constants?.[0];

// The row of shares that published runs reached, of a program on a card: null where no run is read.
const speedOf = (engine, on, model) => (shared.engine_speed ?? []).find((row) => m.is_speed_of(row, engine, on, model.expert_count_max > 0)) ?? null;

// Tokens a second that are likely of a footprint of inference on a card, for all users together, with the band; or why nothing is.
export function likely(own, row, id) {
  const on = r.card(id), model = own.shape?.[0], weight = own.weight?.find((w) => w.dtype_id === row.dtype_id), dtype = shared.dtype.find((d) => d.dtype_id === row.dtype_id);
  if (!on || !model || !weight || !dtype) return { decode: null };
  const speed = speedOf(row.engine_id, on, model), decode = m.decode_likely(model, weight, dtype, row, on, speed);
  return { decode, low: decode && decode / speed.slower_ratio, high: decode && decode / speed.quicker_ratio, prefill: m.prefill_likely(model, dtype, row, on, speed), why: m.likely_reason(speed, row, speed && m.share_tflops(on, dtype.product_bits, speed)) };
}

const shareOf = (on, phase, scale) => (shared.training_share ?? []).find((row) => row.architecture === on.architecture && row.segment === on.segment && row.is_adapter === ["lora", "qlora"].includes(phase) && row.scale === scale);

// Operations of a token of a training, and how many of its elements a token passes; null where nobody knows.
export function work(own, row) {
  const model = own.shape?.[0], multiplied = model ? m.multiplied_elements(model) : null;
  return { multiplied, operations: multiplied == null ? null : m.training_operations(multiplied, model.token_elements, m.attended_elements(model, row.context_tokens), row.phase_id, row.checkpointing) };
}

// How long so many bytes of text, or so many tokens, take as a row of a training shares its cards, and the machine around them; or the reason
// why nobody can say.
export function training(own, row, id, { data_bytes = null, data_tokens = null, days = 1, price = null }) {
  const on = r.card(id), model = own.shape?.[0], { multiplied, operations } = work(own, row);
  const why = on && model ? m.training_reason({ phase_id: row.phase_id, data_bytes, data_tokens, days, epochs: 1, dtype_id: row.dtype_id, bytes_per_token: null, global_batch_tokens: null, price_per_gpu_hour: price }, { ...on, gpu_id: id }, multiplied, constants) : "choose a card";
  if (why) return { why };
  const token_bytes = m.token_bytes_of(model.vocab_size, constants), tokens = data_tokens ?? Math.ceil(data_bytes / token_bytes), cards = row.gpu_count;
  const data_parallel = Math.floor(cards / (row.tensor_parallel * row.pipeline_parallel * (row.context_parallel ?? 1)));
  const micro_tokens = row.sequences * row.context_tokens, most = m.batch_most_of(row.phase_id, row.context_tokens, constants);
  const micro_batches = m.micro_batches_of(most, tokens, data_parallel, micro_tokens), batch = data_parallel * micro_tokens * micro_batches, steps = Math.ceil(tokens / batch);
  const scale = m.cards_scale(cards, constants), share = shareOf(on, row.phase_id, scale);
  if (!share) return { why: "no published training is near enough" };
  const ideal = m.ideal_hours_of(steps * batch, operations, cards, on), hours = (part, factor) => m.hours_of(ideal, part, scale, factor);
  const told = { tokens, operations, batch, micro_batches, data_parallel, micro_tokens, most_tokens: most, share, scale, cards, hours: hours(share.likely, constants.whole_run_factor), least: hours(share.high, constants.whole_run_factor_least), most: hours(share.low, constants.whole_run_factor_most) };
  const step = { ...row, data_parallel, micro_batches, micro_tokens, step_seconds: (told.hours * 3600) / steps };
  return {
    ...told, ideal, kwh: on.tdp_w == null ? null : (cards * told.hours * on.tdp_w) / 1000, cost: price == null ? null : cards * told.hours * price,
    cpu: m.training_cpu_count(cards, constants), memory: m.training_memory_bytes(model.parameter_count, row.host_bytes, cards, constants),
    disk: m.training_disk_bytes(row.phase_id, model.parameter_count, data_bytes ?? tokens * token_bytes, tokens, constants),
    network: m.network_gb_s(step, model.parameter_count), link: m.link_gb_s(step, model.layer_count, model.hidden_size),
  };
}

// The ways to share a training that plans_for searches: of each the fewest cards of so many bytes that hold it, or the closest try. What was
// chosen of a way is kept to.
const CHOSEN = ["sharding", "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel"];
const VERDICTS = ["fits", "multi-gpu", "tight", "no"];
const rank = (verdict) => VERDICTS.indexOf(verdict) + 1 || 5;
function ways(own, { gpu_count: _any, ...wanted }, bytes, isRun) {
  const has_experts = own.shape?.[0]?.expert_count_max > 0, degrees = m.way_degrees(), found = [];
  const asked = { context_tokens: wanted.context_tokens ?? null, engine_id: wanted.engine_id ?? null, phase_id: wanted.phase_id };
  for (const checkpointing of wanted.checkpointing ? [wanted.checkpointing] : ["none", "full"]) for (const way of shared.plan_way)
    for (const sequences of wanted.sequences == null ? m.way_sequences() : [wanted.sequences]) for (const tensor of degrees.tensor) for (const pipeline of degrees.pipeline) for (const context of degrees.context) for (const expert of degrees.expert) {
      const degree = { tensor, pipeline, context, expert }, tried = new Map();
      const split = { ...(way.sharding && { sharding: way.sharding }), tensor_parallel: tensor, pipeline_parallel: pipeline, context_parallel: context, expert_parallel: expert };
      if (CHOSEN.some((key) => wanted[key] != null && wanted[key] !== split[key])) continue;
      for (const gpu_count of m.way_gpu_counts()) {
        if (!m.is_way({ sharding: null, ...way }, gpu_count, degree, asked, has_experts)) continue;
        if (wanted.sequences == null && !m.is_way_sequences(way, gpu_count, sequences, wanted.phase_id)) continue;
        const row = r.ask(own, { ...wanted, sequences, engine_id: wanted.engine_id ?? way.engine, checkpointing, ...split, gpu_count }), verdict = isRun(row) ? r.verdict(row, bytes) : null;
        // one card is a way of its own: nothing is shared
        tried.set(row?.sharding, [...(tried.get(row?.sharding) ?? []), { row, verdict }]);
        if (gpu_count > 1 && (verdict === "fits" || verdict === "multi-gpu")) break;
      }
      const place = ({ row, verdict }) => [rank(verdict), verdict === "no" ? row.total_bytes : row?.gpu_count ?? 0];
      for (const alike of tried.values()) found.push(alike.sort((x, y) => ahead(place(x), place(y)))[0]);
    }
  const order = ({ row, verdict }) => [Math.max(rank(verdict), 2), verdict === "no" ? row.total_bytes : row?.gpu_count ?? 0, (row?.tensor_parallel ?? 1) * (row?.pipeline_parallel ?? 1) * (row?.context_parallel ?? 1) * (row?.expert_parallel ?? 1),
    verdict === "no" ? 0 : ["none", "selective", "full"].indexOf(row?.checkpointing), row?.total_bytes ?? 0, row?.gpu_count ?? 0, row?.engine_id ?? "", row?.sharding ?? ""];
  return found.sort((x, y) => ahead(order(x), order(y))).filter(({ verdict }, i) => i === 0 || ["fits", "multi-gpu", "tight"].includes(verdict));
}
// which of two lists comes first, by its first difference
function ahead(x, y) {
  const i = x.findIndex((value, k) => value !== y[k]);
  return i < 0 ? 0 : x[i] < y[i] ? -1 : 1;
}
// The fewest cards that hold a training and finish it in time, and how they share it, as plan_training_for has it: its first row, with how long
// it takes; where none finishes the quickest. Or why nobody can say. isRun: whether the card is known to run a row's engine and format.
export function planned(own, wanted, id, bytes, asked, isRun = () => true) {
  const days = asked.days ?? 1, tried = ways(own, wanted, bytes, isRun), best = new Map(), on = r.card(id);
  const fewest = Math.min(...tried.map(({ row }) => row?.sequences ?? Infinity));
  let why = tried[0]?.row?.unknown_reason ?? "no way to share it is known";
  tried.forEach(({ row, verdict }, place) => {
    if (!verdict) return;
    for (const cards of m.training_gpu_counts()) {
      if (!m.is_grown_way(cards, row)) continue;
      const told = training(own, { ...row, gpu_count: cards }, id, asked);
      if (told.why) return void (why = told.why);
      if (!m.is_batch_enough(cards, row, told.data_parallel, told.micro_tokens, told.most_tokens, told.tokens, fewest)) continue;
      const divided = row.tensor_parallel * row.pipeline_parallel * row.context_parallel * row.expert_parallel;
      const effort = m.effort_of(told.tokens, told.batch, told.operations, m.wait_ratio(told.network, told.link, on, told.scale, constants), m.idle_ratio(row.pipeline_parallel, told.micro_batches));
      const each = { ...told, row, verdict, finishes: m.finishes_in(verdict, told.hours, told.most, days), key: [rank(verdict), effort, divided, told.network ?? 0, place] };
      if (!best.has(cards) || ahead(each.key, best.get(cards).key) < 0) best.set(cards, each);
    }
  });
  const order = ({ verdict, finishes, hours, cards }) => [Math.max(rank(verdict), 2), finishes === "yes" ? 0 : 1, finishes === "likely" ? 0 : 1, finishes === "no" ? hours : cards];
  const [first] = [...best.values()].sort((x, y) => ahead(order(x), order(y)));
  return first ?? { why };
}

// Every technique of the table on one card: its footprint, and what a token takes.
export function techniques(own, model_id, id, { context_tokens, sequences }) {
  const on = r.card(id), rows = [...(shared.technique ?? [])].sort((x, y) => x.technique_rank - y.technique_rank);
  return rows.map((technique) => {
    const { phase_id, dtype_id, engine_id, optimizer_id, precision, checkpointing, attention, sharding, gpu_count, tensor_parallel, pipeline_parallel, offload, loss, gradient_accumulation } = technique;
    const row = r.ask(own, { model_id, context_tokens, sequences, phase_id, dtype_id, engine_id, optimizer_id, precision, checkpointing, attention, ...(sharding && { sharding }), gpu_count, tensor_parallel, pipeline_parallel, offload, loss, gradient_accumulation });
    const operations = dtype_id === "fp32" || row?.total_bytes == null ? null : work(own, row).operations, share = on && shareOf(on, phase_id, m.cards_scale(gpu_count, constants));
    const seconds = (part) => (on && part && operations != null ? m.token_seconds(row, operations, on, part, constants) : null);
    return { technique, row, least: seconds(1), likely: seconds(share?.likely), update: on && row?.total_bytes != null ? m.update_seconds(row, on, constants) : null };
  });
}

// What the weights and caches of a draft take beside a model, and what both likely write together, as drafted_on has it; or why nobody says.
export function drafted(own, draftOwn, { model_id, draft_id, ...wanted }, id) {
  const on = r.card(id), [row, small] = [[own, model_id], [draftOwn, draft_id]].map(([of, name]) => r.ask(of, { ...wanted, model_id: name, phase_id: "inference" }));
  const model = own.shape?.[0], draft = draftOwn.shape?.[0], weightOf = (of) => of.weight?.find((w) => w.dtype_id === row.dtype_id), dtype = shared.dtype.find((d) => d.dtype_id === row.dtype_id);
  const speed = speedOf(row.engine_id, on, model), draftSpeed = speedOf(small.engine_id, on, draft), rate = dtype ? m.share_tflops(on, dtype.product_bits, speed) : null, tokens = constants.draft_tokens;
  const rules = shared.draft_rule ?? [], rule = rules.find((each) => each.engine_id === row.engine_id) ?? null, known = rules.map((each) => each.engine_id).sort().join(", ");
  const why = m.draft_reason(rule, row, small, model, draft, weightOf(draftOwn)?.embedding_bytes ?? null, known) ?? m.drafting_reason(model, weightOf(own), row, draft, weightOf(draftOwn), small, tokens, on, rate, speed, draftSpeed);
  const bytes = small.total_bytes == null ? null : small.weights_bytes + small.kv_cache_bytes + (small.kv_padding_bytes ?? 0) + (small.state_bytes ?? 0);
  if (why) return { row, bytes, tokens, why };
  const seconds = m.draft_round_seconds(model, weightOf(own), row, draft, weightOf(draftOwn), small, tokens, on, rate, speed, draftSpeed);
  return { row, bytes, tokens, alone: m.decode_likely(model, weightOf(own), dtype, row, on, speed), low: row.sequences * constants.draft_step_tokens_least / seconds, high: row.sequences * constants.draft_step_tokens_most / seconds };
}

// ---- in words
const count = (n) => n.toLocaleString("en", { maximumSignificantDigits: 2 });
export const span = (hours) => (hours < 1 / 60 ? "less than a minute" : hours < 1 ? `${count(hours * 60)} minutes` : hours < 48 ? `${count(hours)} hours` : `${count(hours / 24)} days`);
export const bytes = (n) => (n >= 1e12 ? `${count(n / 1e12)} TB` : `${count(n / 1e9)} GB`);

// What is likely, behind the bound: for each user where there are several.
export function likelySaid(own, row, id) {
  const { decode, low, high, why } = likely(own, row, id), each = row.sequences > 1 ? " for each user" : "", part = (n) => r.rate(n / row.sequences);
  return decode == null ? (why ? ` What is likely nobody says: ${why}.` : "") : ` Likely ${part(decode)} tokens/s${each}, ${part(low)} to ${part(high)} by published runs of such programs.`;
}
export function trainingSaid(own, row, id, asked) {
  const told = training(own, row, id, asked);
  if (told.why) return `How long it takes is not known: ${told.why}.`;
  const days = asked.days ?? 1, verdict = told.most <= days * 24 ? "It finishes" : told.hours <= days * 24 ? "It likely finishes" : "It does not finish";
  const link = told.link ? ` Cards that divide layers send ${count(told.link)} GB/s to one another so that none waits.` : "", network = told.network ? ` Each card sends ${count(told.network)} GB/s so that it does not wait for the others.` : "";
  return `${count(told.tokens)} tokens take about ${span(told.hours)} (${span(told.least)} to ${span(told.most)}), as ${told.share.run_count} published trainings ${told.share.basis} reached ${Math.round(100 * told.share.likely)} % of the rate. ${verdict} in ${count(days)} ${days === 1 ? "day" : "days"}.` +
    ` Around the cards: ${told.cpu} CPU cores, ${bytes(told.memory)} of main memory to load and save, ${bytes(told.disk)} of disk${told.kwh == null ? "" : `, at most ${count(told.kwh)} kWh`}${told.cost == null ? "" : `, ${count(told.cost)} for the cards`}.${network}${link}`;
}
