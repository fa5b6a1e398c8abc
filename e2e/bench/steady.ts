// Scenarios with application lines: at the steady rate of a node, and as fast as one CPU can process them.

import { agentProgram } from './agent-process.ts'
import type { LineKind } from './app-lines.ts'
import { calibrate } from './calibrate.ts'
import { firstThird, lastThird, mean, round } from './figures.ts'
import { type AgentUnderLoad, type Load, type Measured, measureLoad } from './load.ts'
import { separateCpus } from './pinning.ts'
import { httpSink, podLogs } from './scenarios.ts'

export type Format = 'json' | 'raw'
export type Pace = 'smooth' | 'burst'

export const defaultLoad: Load = {
  pods: 100,
  kind: 'mixed',
  mode: 'smooth',
  rate: 10_000,
  seconds: 60,
  count: 1_000_000,
  seed: 1,
}

/** Puts the members of the line into the event, in place of the text. */
export const mergeProgram = '. = merge(., object!(parse_json!(.message)))\ndel(.message)'

/**
 * Pod logs with all their metadata to `http` with NDJSON and zstd; with `json` the members of the line become those of the event.
 */
export const penstock =
  (format: Format, batchSecs = 1): AgentUnderLoad =>
  (where) => ({
    ...agentProgram(where.folder, {
      data_dir: where.dataDir,
      api: { enabled: true, address: where.apiAddress },
      sources: { pods: podLogs(where) },
      transforms: format === 'json' ? { edit: { type: 'remap', inputs: ['pods'], source: mergeProgram } } : {},
      sinks: {
        out: httpSink(where, '/', [format === 'json' ? 'edit' : 'pods'], {
          compression: { algorithm: 'zstd', level: 1 },
          batch: { max_bytes: 1_000_000, timeout_secs: batchSecs },
        }),
      },
    }),
    ...(format === 'json' ? { metrics: `http://${where.apiAddress}/metrics` } : {}),
  })

/** The figures of all scenarios of this kind. */
export function loadFigures(measured: Measured): Record<string, number> {
  const { cpu, cpuMeanwhile, lines, seconds, rss, delivery } = measured
  return {
    lines,
    seconds: round(seconds),
    start_cpu_s: round(measured.startCpu),
    warmup_cpu_s: round(measured.warmupCpu),
    cores: round(cpuMeanwhile / seconds, 4),
    cpu_s_per_million: round((cpu / lines) * 1e6),
    rss_mean_mb: round(mean(rss), 1),
    rss_max_mb: round(measured.peakRss, 1),
    latency_avg_ms: round(delivery.latencyAvgMs, 1),
    latency_p99_ms: delivery.latencyP99Ms,
    lines_per_s: Math.round(measured.linesPerSecond),
    lost: measured.lost,
    doubled: measured.doubled,
    ...(measured.byteLaneShare === undefined ? {} : { byte_lane_share: round(measured.byteLaneShare, 4) }),
  }
}

export async function steady(
  mode: Pace,
  format: Format,
  seconds = defaultLoad.seconds,
  rate = defaultLoad.rate,
): Promise<object> {
  const { p_ns } = calibrate()
  const cpus = separateCpus()
  const measured = await measureLoad({ ...defaultLoad, mode, seconds, rate }, cpus, penstock(format))
  return { scenario: 'steady', mode, format, ...loadFigures(measured), p_ns, pinned: cpus !== undefined }
}

export async function peak(format: Format, count = defaultLoad.count): Promise<object> {
  const { p_ns } = calibrate()
  const cpus = separateCpus()
  const measured = await measureLoad({ ...defaultLoad, mode: 'all', count }, cpus, penstock(format))
  return { scenario: 'peak', mode: 'all', format, ...loadFigures(measured), p_ns, pinned: cpus !== undefined }
}

/** Lines of very many shapes, compared with a run of lines of a single shape and about the same size. */
export async function manyShapes(scenario: 'keys' | 'shapes', seconds = 600): Promise<object> {
  const { p_ns } = calibrate()
  const cpus = separateCpus()
  const run = (kind: LineKind, time: number) =>
    measureLoad({ ...defaultLoad, kind, seconds: time }, cpus, penstock('json'))
  const one = await run('one-shape', Math.min(60, seconds))
  const many = await run(scenario, seconds)
  const [oneCpu, manyCpu] = [one, many].map(({ cpu, lines }) => (cpu / lines) * 1e6) as [number, number]
  return {
    scenario,
    ...loadFigures(many),
    rss_first_third_mb: round(mean(firstThird(many.rss)), 1),
    rss_last_third_mb: round(mean(lastThird(many.rss)), 1),
    cpu_us_per_event: round(manyCpu),
    one_shape_cpu_us_per_event: round(oneCpu),
    times_one_shape: round(manyCpu / oneCpu, 2),
    one_shape_rss_max_mb: round(one.peakRss, 1),
    lost: one.lost + many.lost,
    doubled: one.doubled + many.doubled,
    p_ns,
    pinned: cpus !== undefined,
  }
}

const silenceBatchMs = 50

/** The delay of a line after silence. The sink waits only briefly for more lines, so that its wait does not hide the agent's. */
export async function silence(seconds = 120): Promise<object> {
  const cpus = separateCpus()
  const load: Load = { ...defaultLoad, mode: 'silence', seconds }
  const measured = await measureLoad(load, cpus, penstock('json', silenceBatchMs / 1000))
  const figures = loadFigures(measured)
  return {
    scenario: 'silence',
    seconds,
    lines: measured.lines,
    start_cpu_s: figures['start_cpu_s'],
    cores: figures['cores'],
    rss_mean_mb: figures['rss_mean_mb'],
    rss_max_mb: figures['rss_max_mb'],
    latency_avg_ms: figures['latency_avg_ms'],
    latency_p99_ms: figures['latency_p99_ms'],
    batch_ms: silenceBatchMs,
    latency_p99_besides_batch_ms: measured.delivery.latencyP99Ms - silenceBatchMs,
    lost: measured.lost,
    doubled: measured.doubled,
    pinned: cpus !== undefined,
  }
}
