// Scenarios on the lines of applications: at a steady rate as a node has it, and as fast as one CPU takes them.

import { agentProgram } from './agent-process.ts'
import { calibrate } from './calibrate.ts'
import { mean, round } from './figures.ts'
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

const program = '. = merge(., object!(parse_json!(.message)))\ndel(.message)'

/** Pod logs with all their metadata to `http` with NDJSON and zstd; with `json` the members of the line become those of the event. */
export const penstock =
  (format: Format): AgentUnderLoad =>
  (where) =>
    agentProgram(where.folder, {
      data_dir: where.dataDir,
      sources: { pods: podLogs(where) },
      transforms: format === 'json' ? { edit: { type: 'remap', inputs: ['pods'], source: program } } : {},
      sinks: {
        out: httpSink(where, '/', [format === 'json' ? 'edit' : 'pods'], {
          compression: { algorithm: 'zstd', level: 1 },
        }),
      },
    })

/** The figures that all scenarios of this kind have. */
export function loadFigures(measured: Measured): Record<string, number> {
  const { cpu, lines, seconds, rss, delivery } = measured
  return {
    lines: lines,
    seconds: round(seconds),
    start_cpu_s: round(measured.startCpu),
    cores: round(cpu / seconds),
    cpu_s_per_million: round((cpu / lines) * 1e6),
    rss_mean_mb: round(mean(rss), 1),
    rss_max_mb: round(measured.peakRss, 1),
    latency_avg_ms: round(delivery.latencyAvgMs, 1),
    latency_p99_ms: delivery.latencyP99Ms,
    lines_per_s: Math.round(measured.linesPerSecond),
    lost: measured.lost,
    doubled: measured.doubled,
  }
}

export async function steady(mode: Pace, format: Format, seconds = defaultLoad.seconds): Promise<object> {
  const { p_ns } = calibrate()
  const cpus = separateCpus()
  const measured = await measureLoad({ ...defaultLoad, mode, seconds }, cpus, penstock(format))
  return { scenario: 'steady', mode, format, ...loadFigures(measured), p_ns, pinned: cpus !== undefined }
}

export async function peak(format: Format, count = defaultLoad.count): Promise<object> {
  const { p_ns } = calibrate()
  const cpus = separateCpus()
  const measured = await measureLoad({ ...defaultLoad, mode: 'all', count }, cpus, penstock(format))
  return { scenario: 'peak', mode: 'all', format, ...loadFigures(measured), p_ns, pinned: cpus !== undefined }
}
