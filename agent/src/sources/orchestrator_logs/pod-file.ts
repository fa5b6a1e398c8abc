// The source's state for one log file of a container, and the positions derived from held lines.

import type { LineOrigin } from '../../bytes/line-origin.ts'
import type { OriginTags } from '../../component.ts'
import type { Finalizer } from '../../event/finalizer.ts'
import type { EventMetadata } from '../../event/log.ts'
import type { Timestamp } from '../../event/timestamp.ts'
import type { ValueObject } from '../../event/value.ts'
import type { MultilineAggregator } from '../../tailing/multiline.ts'
import type { Limiter } from './limiter.ts'
import type { PartialLine } from './partial.ts'
import type { Pod } from './pod-metadata.ts'

export type StandardStream = 'stdout' | 'stderr'
export type Group = MultilineAggregator<{ readonly timestamp: Timestamp; readonly stream: StandardStream }>

export const streams: readonly StandardStream[] = ['stdout', 'stderr']

/**
 * Lines that a resumed source reads again because its predecessor held them back: for each stream, all lines from one
 * position on. All other lines before `until` have been passed on.
 */
export interface Resumed {
  readonly until: number
  readonly from: Readonly<Record<StandardStream, number | undefined>>
}

export interface PodFile {
  readonly folder: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly container: string
  origin: OriginTags
  /** Fields shared by all events of the file, built from the objects below. */
  constants: ValueObject
  /** In a bundle, a second copy of the pod's metadata that no program can change. */
  metadata: EventMetadata
  /** The same for byte lines, built when first needed. */
  lines: LineOrigin | undefined
  /** The field values for fast event construction; undefined if the fields are not the default ones. */
  orchestrator: ValueObject | undefined
  pod: Pod | undefined
  namespaceLabels: ValueObject | undefined
  nodeLabels: ValueObject | undefined
  path: string
  /** Lines written after this time do not belong to the known pod, which was deleted before. */
  knownUntilMs: number
  /** Revision of the metadata that the objects above were built from. */
  revision: number
  /** Tags of `log_bytes_written_total`: always the same object, because the counter is looked up by identity. */
  readonly writtenTags: { readonly namespace: string }
  /** The path that the runtime writes to; a rotated file has another path, which continues from this one. */
  readonly writtenPath: string
  /** Whether lines have been read. */
  begun: boolean
  resumed: Resumed | undefined
  readonly limiter: Limiter | undefined
  /** Number of lines dropped by a limit. */
  dropped: number
  /** The container is over its limit: the reader reads no line before this time. */
  heldUntil: number
  /** Finalizers of line parts from the previous file, until the lines are passed on. */
  carried: Finalizer[]
  readonly partials: Readonly<Record<StandardStream, PartialLine>>
  readonly groups: Readonly<Record<StandardStream, Group>> | undefined
}

/** Position of the first held line of a stream. */
export function heldFrom(file: PodFile, stream: StandardStream): number | undefined {
  const partial = file.partials[stream]
  const group = file.groups?.[stream].pendingFrom
  if (!partial.pending) return group
  return group === undefined ? partial.start : Math.min(partial.start, group)
}

/** Position from which the file must be read again: before all held lines. */
export function safePosition(file: PodFile, position: number): number {
  return Math.min(position, heldFrom(file, 'stdout') ?? position, heldFrom(file, 'stderr') ?? position)
}

export function isHandedOn({ until, from }: Resumed, stream: StandardStream, position: number): boolean {
  if (position >= until) return false
  const held = from[stream]
  return held === undefined || position < held
}
