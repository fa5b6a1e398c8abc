// Orchestrator logs source: the logs of all pods of this node, with metadata from the Kubernetes API. The fields of a
// container are built once and shared by its events, so a line costs its prefix, its text and one object.

import { defineSource, type LogPosition, type SourceContext } from '../component.ts'
import { PenstockError } from '../errors.ts'
import { parsePath } from '../event/path.ts'
import { zoneName } from '../formats/timezone.ts'
import { PodLogConfinement } from '../tailing/confinement.ts'
import type { DiscoveryRules } from '../tailing/discovery.ts'
import { compileGlob, type Glob } from '../tailing/glob.ts'
import { compileMultiline, type MultilineRule } from '../tailing/multiline.ts'
import { compileDelimiter } from '../tailing/slab.ts'
import { Tailer } from '../tailing/tail.ts'
import { defaultReadBytes, type LineTime, type TailOptions } from '../tailing/tailed-file.ts'
import { type Annotator, compileAnnotator } from './orchestrator_logs/annotate.ts'
import { LineAssembler } from './orchestrator_logs/assembler.ts'
import { PodByteLane } from './orchestrator_logs/byte-lane.ts'
import { CompressedLogs } from './orchestrator_logs/compressed-logs.ts'
import { CriParser, zoneOffset } from './orchestrator_logs/cri.ts'
import { PodDescriber } from './orchestrator_logs/describer.ts'
import { DockerParser } from './orchestrator_logs/docker.ts'
import { environmentOf, type PodLogEnvironment } from './orchestrator_logs/environment.ts'
import { checkPodLogOptions, type PodLogOptions, podLogOptions } from './orchestrator_logs/options.ts'
import type { PodFile } from './orchestrator_logs/pod-file.ts'
import { compileLineTime, PodLogReader } from './orchestrator_logs/reader.ts'
import { Throttle } from './orchestrator_logs/throttle.ts'

export const orchestratorLogs = defineSource({
  type: 'orchestrator_logs',
  products: ['Kubernetes'],
  summary: 'Collects the logs of the pods of a node and adds metadata from the Kubernetes API.',
  description:
    'Reads the files below `/var/log/pods` and watches pods, namespaces and the node at the API. The source skips pods and namespaces with the label `penstock.dev/exclude: "true"`, and the containers named in a pod\'s annotation `penstock.dev/exclude-containers`. Needs Kubernetes 1.19 or newer.',
  aliases: ['kubernetes_logs'],
  aliasNotes: {
    kubernetes_logs: 'it writes pod metadata to `.orchestrator`, and nothing to `.kubernetes`',
  },
  outputs: ['log'],
  acknowledges: false,
  runsOn: 'node',
  options: podLogOptions,
  check: checkPodLogOptions,

  objectsBecause(options) {
    if (options.multiline !== undefined) return '`multiline` joins lines'
    if (options.ingestion_timestamp_field) return '`ingestion_timestamp_field` is set'
    return undefined
  },

  async build(options, context) {
    const annotator = compileAnnotator(
      options.pod_annotation_fields,
      options.insert_namespace_fields ? options.namespace_annotation_fields.namespace_labels : '',
      options.node_annotation_fields.node_labels,
      options.metadata,
    )
    const environment = await environmentOf(options, context, annotator.nodeLabels)
    const rule = options.multiline === undefined ? undefined : compileMultiline(options.multiline)
    const { reader, writtenAt, compressed } = readerOf(options, context, environment, annotator, rule)
    const tailer = new Tailer<PodFile>(tailOptions(options, environment), reader, context)
    return {
      async run() {
        const releaseMs = rule === undefined ? 1000 : Math.min(1000, rule.timeoutMs)
        const release = setInterval(() => reader.releaseExpired(), releaseMs)
        try {
          await environment.run(tailer)
        } finally {
          clearInterval(release)
        }
      },
      lagSeconds: () => secondsSince(tailer.oldestUnread(writtenAt)),
      positions(podUid) {
        const positions = tailer.readPositions(({ state }) => state.uid === podUid, writtenAt)
        const containers = new Map(positions.map(({ file }) => [file.directory, file.state.container]))
        // It is not known how much of these an earlier run has read.
        const left = (tailer.isFirst ? [...containers] : []).flatMap(([directory, container]) =>
          leftIn(compressed, directory, container),
        )
        return [
          ...left,
          ...positions.map(({ file, size, unreadSince }) => ({
            container: file.state.container,
            file: file.path,
            size,
            read: file.offset,
            delivered: file.progress.position,
            lagSeconds: secondsSince(unreadSince),
            dropped: file.state.dropped,
          })),
        ]
      },
      async healthcheck(signal) {
        const status = await environment.probe(signal)
        if (status !== 200) {
          throw new PenstockError('PEN_KUBERNETES', `The Kubernetes API returned status ${status}.`)
        }
      },
    }
  },
})

function leftIn(compressed: CompressedLogs, directory: string, container: string): readonly LogPosition[] {
  const unread = { read: 0, delivered: 0, lagSeconds: 0, dropped: 0 }
  return compressed.in(directory).map(({ file, size, lines }) => ({
    container,
    file,
    size,
    ...unread,
    compressed: lines === undefined ? {} : { lines },
  }))
}

function readerOf(
  options: PodLogOptions,
  context: SourceContext,
  environment: PodLogEnvironment,
  annotator: Annotator,
  rule: MultilineRule | undefined,
): { readonly reader: PodLogReader; readonly writtenAt: LineTime; readonly compressed: CompressedLogs } {
  const { logSchema, timezone } = context.globals
  const { messageKey, timestampKey, sourceTypeKey } = logSchema
  const zone = zoneOffset(zoneName(options.timezone ?? timezone))
  const cri = new CriParser(zone)
  const docker = new DockerParser(zone)
  const writtenAt = compileLineTime(cri, docker)
  const hasFile = options.metadata === 'full'
  const ingestionPath = options.ingestion_timestamp_field
    ? parsePath(options.ingestion_timestamp_field)?.segments
    : undefined
  const assembler = new LineAssembler(
    {
      merges: options.auto_partial_merge,
      mergeLimit:
        options.max_merged_line_bytes === undefined
          ? undefined
          : { maxBytes: options.max_merged_line_bytes, action: options.max_merged_line_action },
      rule,
      hasFile,
      messageKey,
      timestampKey,
      ingestionPath,
    },
    context.events,
  )
  const describer = new PodDescriber(
    environment.metadata,
    {
      node: environment.node,
      annotator,
      isManaged: environment.isManaged,
      delayDeletionMs: options.delay_deletion_ms,
      hasFile,
      fileTag: options.internal_metrics.include_file_tag,
      defaultKeys:
        messageKey === 'message' &&
        timestampKey === 'timestamp' &&
        sourceTypeKey === 'source_type' &&
        ingestionPath === undefined,
      sourceTypeKey,
      writtenAt,
    },
    context.events,
  )
  const lane = context.globals.remap?.byte_lane === false ? undefined : new PodByteLane(cri, hasFile, environment.keys)
  const throttle = new Throttle(environment.limits, context.events)
  const { accept } = rulesOf(options, environment)
  const compressed = new CompressedLogs((path) => !accept(path))
  const reader = new PodLogReader(
    { root: environment.root, timestampKey, hasSuccessor: environment.isManaged },
    { cri, docker, assembler, describer, throttle, lane, compressed },
    context,
  )
  return { reader, writtenAt, compressed }
}

function tailOptions(options: PodLogOptions, environment: PodLogEnvironment): TailOptions {
  return {
    rules: rulesOf(options, environment),
    fingerprint: { strategy: 'checksum', lines: options.fingerprint_lines, maxLineBytes: options.max_line_bytes },
    delimiter: compileDelimiter(Buffer.from('\n')),
    maxLineBytes: options.max_line_bytes,
    maxReadBytes: options.max_read_bytes ?? defaultReadBytes,
    isReadBoundExact: options.max_read_bytes !== undefined,
    oldestFirst: options.oldest_first ? 'folder' : undefined,
    readFrom: options.read_from,
    ignoreOlderMs: options.ignore_older_secs === undefined ? undefined : options.ignore_older_secs * 1000,
    ignoreCheckpoints: false,
    rotateWaitMs: options.rotate_wait_secs === undefined ? undefined : options.rotate_wait_secs * 1000,
    sweepMs: options.glob_minimum_cooldown_ms,
    stopAtEnd: false,
    removeAfterMs: undefined,
    lastLine: false,
    fileTag: options.internal_metrics.include_file_tag,
    // Only Linux shows the path of an open file descriptor.
    confinement: process.platform === 'linux' ? new PodLogConfinement(environment.root) : undefined,
    ...environment.tailing,
  }
}

/** Below the root there is a folder for each pod, which has a folder for each container. */
function rulesOf(options: PodLogOptions, environment: PodLogEnvironment): DiscoveryRules {
  const { root } = environment
  const include = globs(options.include_paths_glob_patterns)
  const exclude = globs(options.exclude_paths_glob_patterns)
  const includeAll = options.include_paths_glob_patterns.includes('**/*')
  return {
    roots: [root],
    enter(directory) {
      const names = directory.slice(root.length + 1).split('/')
      const [folder = '', container = ''] = names
      if (names.length === 1) return environment.wantsPod(folder)
      return names.length === 2 && environment.wantsContainer(folder, container)
    },
    accept(found) {
      const names = found.slice(root.length + 1).split('/')
      return (
        names.length === 3 &&
        (names[2] as string).includes('.log') &&
        (includeAll || include.some((glob) => glob.matches(found))) &&
        !exclude.some((glob) => glob.matches(found))
      )
    },
  }
}

function secondsSince(time: number | undefined): number {
  return time === undefined ? 0 : Math.max(0, Date.now() - time) / 1000
}

function globs(patterns: readonly string[]): Glob[] {
  return patterns.map(compileGlob).filter((glob) => glob !== undefined)
}
