// Scenarios for the disk buffer: its speed in comparison with `dd` on the same disk, and whether an agent stays stable and loses nothing
// while its destination fails every few seconds.

import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '@penstock/agent/testing/free-port'
import { processCpu } from '../process-figures.ts'
import { metricsOf, peakRss, root, rssMb } from './agent-process.ts'
import { calibrate } from './calibrate.ts'
import { firstThird, lastThird, mean, round } from './figures.ts'
import { criLine, jsonLine, linesFile } from './lines.ts'
import { OneAgent } from './one-agent.ts'
import type { Place } from './scenarios.ts'

interface Written {
  readonly disk_mb: number
  readonly write_mb_per_s: number
}

/** Writes and reads lines (`buffer`), or the parsed objects (`buffer-parsed`). */
export function buffer(scenario: string, events: number): object {
  const file = join(tmpdir(), `penstock-bench-${userInfo().uid}`, 'json-20000.log')
  linesFile(file, 20_000, jsonLine)
  const folder = mkdtempSync(join(tmpdir(), 'penstock-buffer-'))
  try {
    const script = join(root, 'agent/src/bench/bench-buffer.ts')
    const kind = scenario === 'buffer-parsed' ? 'parsed' : 'raw'
    const args = ['--conditions=source', script, String(events), file, join(folder, 'out'), kind]
    const figures = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Written
    const blocks = Math.max(1, Math.round(figures.disk_mb))
    const started = performance.now()
    execFileSync('dd', ['if=/dev/zero', `of=${join(folder, 'dd')}`, 'bs=1M', `count=${blocks}`, 'conv=fdatasync'], {
      stdio: 'ignore',
    })
    const dd = (blocks * 1.048576) / ((performance.now() - started) / 1000)
    const ofDd = Math.round((figures.write_mb_per_s / dd) * 100) / 100
    return { scenario, ...figures, dd_mb_per_s: Math.round(dd), write_of_dd: ofDd, p_ns: calibrate().p_ns }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Leaves gigabytes in a disk buffer, as a kill does, and opens it in another process. Measures the time to the first batch, with an empty
 * page cache if the machine allows it.
 */
export function bufferRestart(events: number): object {
  const file = join(tmpdir(), `penstock-bench-${userInfo().uid}`, 'json-20000.log')
  linesFile(file, 20_000, jsonLine)
  const folder = mkdtempSync(join(tmpdir(), 'penstock-buffer-'))
  try {
    const script = join(root, 'agent/src/bench/bench-buffer.ts')
    const run = (part: string) => {
      const args = ['--conditions=source', script, String(events), file, join(folder, 'out'), 'raw', part]
      return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as object
    }
    const wrote = run('write')
    const warm = run('first')
    const isCold = dropPageCache()
    return { scenario: 'buffer-restart', ...wrote, warm, ...(isCold ? { cold: run('first') } : {}) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns false if this is not permitted. */
function dropPageCache(): boolean {
  try {
    execFileSync('sync')
    writeFileSync('/proc/sys/vm/drop_caches', '3')
    return true
  } catch {
    return false
  }
}

const blockLines = 5000

/** The written share of the maximum rate, and the maximum number of lines in flight before the writer waits. */
const load = 0.8
const maxUnderWay = 4_000_000

/** An agent that reads pods, edits lines and keeps them in a disk buffer for a destination that fails at times. */
function soakConfig(where: Place, api: string) {
  return {
    data_dir: where.dataDir,
    api: { enabled: true, address: api },
    sources: {
      pods: {
        type: 'orchestrator_logs',
        logs_dir: where.logsDir,
        kube_config_file: where.kubeConfig,
        self_node_name: 'bench',
      },
    },
    transforms: {
      edit: {
        type: 'remap',
        inputs: ['pods'],
        source: '. = parse_json!(.message)\n.env = "prod"',
        drop_on_error: true,
      },
    },
    sinks: {
      out: {
        type: 'http',
        inputs: ['edit'],
        uri: `${where.receiver}/flaky`,
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
        batch: { max_bytes: 1_000_000, timeout_secs: 1 },
        request: { concurrency: 8, retry_initial_backoff_secs: 1, retry_max_duration_secs: 1 },
        buffer: { type: 'disk', max_size: 2_000_000_000 },
        healthcheck: false,
      },
    },
  }
}

/** Writes blocks of lines to the log file of a container, and rotates it like the runtime. */
class RotatedWriter {
  written = 0
  readonly #block = Array.from({ length: blockLines }, (_, index) => `${criLine(index)}\n`).join('')
  readonly #file: string
  readonly #received: () => number
  readonly #rotated: string[] = []
  #rotations = 0

  /** @param received number of delivered lines */
  constructor(file: string, received: () => number) {
    this.#file = file
    this.#received = received
  }

  /** Makes the first line of a file unique, because it identifies the file. */
  begin(): void {
    writeFileSync(this.#file, `${criLine(1_000_000_000 + this.#rotations)}\n`)
    this.written++
  }

  append(blocks: number): void {
    for (let index = 0; index < blocks; index++) appendFileSync(this.#file, this.#block)
    this.written += blocks * blockLines
    if (statSync(this.#file).size < 50_000_000) return
    const name = `${this.#file}.${String(this.#rotations++).padStart(8, '0')}`
    renameSync(this.#file, name)
    this.begin()
    this.#rotated.push(name)
    // Remove only files whose lines have all been delivered.
    while (this.#rotated.length > 30 && this.written - this.#received() < maxUnderWay / 2)
      rmSync(this.#rotated.shift() as string)
  }
}

/**
 * Pod logs through a disk buffer to a destination that responds with 503 for half a second in every five. The rate is 80 % of the rate at
 * which the same agent processed a backlog at the beginning.
 */
export async function soakFaults(seconds: number): Promise<object> {
  const api = `127.0.0.1:${await freePort()}`
  await using agent = await OneAgent.start((where) => soakConfig(where, api))
  const { receiver, where, pid } = agent
  const received = () => receiver.counts()['/flaky'] ?? 0
  const samples: number[] = []
  const writer = new RotatedWriter(agent.log, received)
  let heldMs = 0
  let maxBuffered = 0
  writer.begin()
  writer.append(100)
  const startCpu = await agent.cpuToFirstLine()
  const began = performance.now()
  while (received() < writer.written / 2) await wait(20)
  const from = { at: performance.now(), lines: received() }
  while (received() < writer.written) await within(began, 120_000, 'the backlog')
  const max = (received() - from.lines) / ((performance.now() - from.at) / 1000)
  const rate = max * load

  const started = performance.now()
  const cpuBefore = processCpu(pid)
  let due = 0
  let last = started
  while (performance.now() - started < seconds * 1000) {
    const now = performance.now()
    if (writer.written - received() > maxUnderWay) heldMs += now - last
    else due += ((now - last) / 1000) * rate
    last = now
    const blocks = Math.floor(due / blockLines)
    if (blocks > 0) writer.append(blocks)
    due -= blocks * blockLines
    maxBuffered = Math.max(maxBuffered, writer.written - received())
    if (now - started > Math.min(60_000, seconds * 300)) samples.push(rssMb(pid))
    await wait(50)
  }
  const cores = (processCpu(pid) - cpuBefore) / ((performance.now() - started) / 1000)
  // Wait for events in flight while there is progress.
  for (let [seen, since] = [received(), performance.now()]; received() < writer.written; await wait(50)) {
    if (received() > seen) [seen, since] = [received(), performance.now()]
    if (performance.now() - since > 30_000) break
  }
  await wait(1500) // until the last responses are counted
  const counted = await metricsOf(`http://${api}/metrics`)
  return {
    scenario: 'soak-faults',
    seconds,
    start_cpu_s: round(startCpu),
    cores: round(cores),
    most_events_per_s: Math.round(max),
    rate_events_per_s: Math.round(rate),
    writer_held_s: Math.round(heldMs / 1000),
    most_under_way: maxBuffered,
    written: writer.written,
    received: received(),
    source_received: counted('component_received_events_total', 'component_id="pods"'),
    sink_sent: counted('component_sent_events_total', 'component_id="out"'),
    discarded: counted('component_discarded_events_total') + counted('buffer_discarded_events_total'),
    still_buffered: counted('buffer_events'),
    unexplained: writer.written - received(),
    request_errors: counted('component_errors_total', 'component_id="out"'),
    rss_first_third_mb: Math.round(mean(firstThird(samples))),
    rss_last_third_mb: Math.round(mean(lastThird(samples))),
    peak_rss_mb: Math.round(peakRss(pid) ?? 0),
    segments_at_end: readdirSync(join(where.dataDir, 'buffer/v2/out')).filter((name) => name.endsWith('.dat')).length,
  }
}

async function within(began: number, limitMs: number, what: string): Promise<void> {
  if (performance.now() - began > limitMs) throw new Error(`Gave up waiting for ${what}.`)
  await wait(20)
}
