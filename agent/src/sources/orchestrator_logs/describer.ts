// The data shared by all events of a file: the fields about its pod, namespace and node. They are rebuilt only when their
// metadata has changed.

import { type EventMetadata, noMetadata } from '../../event/log.ts'
import { setPath } from '../../event/path.ts'
import { markShared } from '../../event/shared-object.ts'
import type { ValueObject } from '../../event/value.ts'
import type { Slab } from '../../tailing/slab.ts'
import type { LineTime, TailedFile } from '../../tailing/tailed-file.ts'
import type { ComponentEvents } from '../../telemetry/component-events.ts'
import { fact } from '../../telemetry/facts.ts'
import { type Annotator, defaultAnnotator } from './annotate.ts'
import type { PodFile } from './pod-file.ts'
import type { Pod, PodMetadata } from './pod-metadata.ts'

export interface DescriberOptions {
  readonly node: string
  readonly annotator: Annotator
  /**
   * Whether an operator manages this agent. If so, the metadata is also written where no program can change it, and the
   * metadata of a deleted pod stays valid until its files are read, because another pod has another folder.
   */
  readonly isManaged: boolean
  readonly delayDeletionMs: number
  readonly hasFile: boolean
  readonly fileTag: boolean
  /** Whether events have the default keys, which allows fast construction. */
  readonly defaultKeys: boolean
  readonly sourceTypeKey: string
  readonly writtenAt: LineTime
}

export class PodDescriber {
  readonly #metadata: PodMetadata
  readonly #options: DescriberOptions
  readonly #events: ComponentEvents
  /** Writes the metadata that no program can change. */
  readonly #protector: Annotator | undefined

  constructor(metadata: PodMetadata, options: DescriberOptions, events: ComponentEvents) {
    this.#metadata = metadata
    this.#options = options
    this.#events = events
    this.#protector = options.isManaged ? defaultAnnotator() : undefined
  }

  /** The metadata of a new file's pod. */
  initial(folder: string, namespace: string) {
    const { annotator, node } = this.#options
    const pod = this.#metadata.pod(folder)
    return {
      pod,
      namespaceLabels: annotator.namespaceLabels ? this.#labelsOf(namespace, pod) : undefined,
      nodeLabels: annotator.nodeLabels ? this.#metadata.nodeLabels(node) : undefined,
      metadata: noMetadata as EventMetadata,
    }
  }

  /** The kubelet reports a new container shortly after the container starts to write. */
  isContainerUnknown(file: PodFile): boolean {
    const pod = this.#metadata.pod(file.folder)
    return pod !== undefined && pod.containers.get(file.container)?.id === undefined
  }

  /** Rebuilds the common data of all events of a file if its inputs have changed. */
  refresh(tailed: TailedFile<PodFile>, slab: Slab): void {
    const file = tailed.state
    const { annotator, isManaged, node } = this.#options
    const metadata = this.#metadata
    const { revision } = metadata
    const isLate = isManaged && Date.now() > file.knownUntilMs && file.pod !== undefined
    if (file.revision === revision && file.path === tailed.path && !isLate) return
    file.revision = revision
    const before = isManaged ? file : undefined
    const isKnown = !isManaged || this.#isStillKnown(file, slab)
    const pod = isKnown ? (metadata.pod(file.folder) ?? before?.pod) : undefined
    const namespaceLabels = annotator.namespaceLabels
      ? (this.#labelsOf(file.namespace, pod) ?? before?.namespaceLabels)
      : undefined
    const nodeLabels = annotator.nodeLabels ? metadata.nodeLabels(pod?.node ?? node) : undefined
    if (
      file.pod === pod &&
      file.namespaceLabels === namespaceLabels &&
      file.nodeLabels === nodeLabels &&
      file.path === tailed.path
    ) {
      return
    }
    file.pod = pod
    file.namespaceLabels = namespaceLabels
    file.nodeLabels = nodeLabels
    file.path = tailed.path
    this.annotate(file)
  }

  annotate(file: PodFile): void {
    const { annotator, fileTag, hasFile, sourceTypeKey, defaultKeys } = this.#options
    const constants: ValueObject = hasFile ? { file: file.path } : {}
    setPath(constants, [sourceTypeKey], 'orchestrator_logs')
    annotator.annotate(constants, file)
    file.constants = constants
    if (this.#protector !== undefined) {
      const known: ValueObject = {}
      this.#protector.annotate(known, file)
      file.metadata = { value: { vector: known }, secrets: {} }
    }
    file.lines = undefined
    for (const value of Object.values(constants)) markShared(value)
    const { orchestrator } = constants
    const names = Object.keys(constants).sort().join()
    const usual = defaultKeys && names === (hasFile ? 'file,orchestrator,source_type' : 'orchestrator,source_type')
    file.orchestrator = usual && !Array.isArray(orchestrator) ? (orchestrator as ValueObject) : undefined
    file.origin = {
      pod_name: file.name,
      pod_namespace: file.namespace,
      container_name: file.container,
      ...(fileTag ? { file: file.path } : {}),
    }
  }

  /** Counts the events that lack expected metadata. */
  countMissing(file: PodFile, count: number): void {
    if (count === 0) return
    const { annotator } = this.#options
    if (file.pod === undefined) {
      this.#events.count('k8s_event_annotation_failures_total', count)
      this.#events.error({
        type: 'reader_failed',
        stage: 'processing',
        code: 'annotation_failed',
        message: 'Could not annotate events, because their pod is unknown.',
        fields: { file: fact(file.path) },
        count,
        level: 'warn',
      })
    }
    if (annotator.namespaceLabels && file.namespaceLabels === undefined) {
      this.#events.count('k8s_event_namespace_annotation_failures_total', count)
    }
    if (annotator.nodeLabels && file.nodeLabels === undefined) {
      this.#events.count('k8s_event_node_annotation_failures_total', count)
    }
  }

  #labelsOf(namespace: string, pod: Pod | undefined): ValueObject | undefined {
    return this.#metadata.namespaceLabels(namespace) ?? pod?.namespaceLabels
  }

  /**
   * Whether the lines were written while their pod was known: before its deletion, or up to `delay_deletion_ms` after it.
   */
  #isStillKnown(file: PodFile, slab: Slab): boolean {
    const metadata = this.#metadata
    const deleted = metadata.deletedAt(file.folder)
    if (metadata.pod(file.folder) !== undefined && deleted === undefined) {
      file.knownUntilMs = Number.POSITIVE_INFINITY
      return true
    }
    const now = Date.now()
    if (file.knownUntilMs === Number.POSITIVE_INFINITY) {
      file.knownUntilMs = (deleted ?? now - metadata.delayMs) + this.#options.delayDeletionMs
    }
    if (now <= file.knownUntilMs) return true
    const written = this.#options.writtenAt(slab.buffer, slab.starts[0] as number, slab.ends[0] as number)
    return written === undefined || written <= file.knownUntilMs
  }
}
