// A metric event. Its members are the wire names in camelCase; codecs write the JSON form.

import { type EventMetadata, noMetadata } from './log.ts'
import { metricSize } from './size.ts'
import type { Timestamp } from './timestamp.ts'

export type MetricKind = 'incremental' | 'absolute'

export type MetricValue =
  | { readonly type: 'counter'; readonly value: number }
  | { readonly type: 'gauge'; readonly value: number }
  | { readonly type: 'set'; readonly values: readonly string[] }
  | {
      readonly type: 'distribution'
      readonly samples: readonly { readonly value: number; readonly rate: number }[]
      readonly statistic: 'histogram' | 'summary'
    }
  | {
      readonly type: 'histogram'
      /** Not cumulative. The last limit may be infinite. */
      readonly buckets: readonly { readonly upperLimit: number; readonly count: number }[]
      readonly count: number
      readonly sum: number
    }
  | {
      readonly type: 'summary'
      readonly quantiles: readonly { readonly quantile: number; readonly value: number }[]
      readonly count: number
      readonly sum: number
    }

/** A tag's value: text, null for a bare tag, or a list of these. */
export type TagValue = string | null | readonly (string | null)[]

export type MetricTags = Map<string, TagValue>

export interface MetricParts {
  readonly name: string
  readonly kind: MetricKind
  readonly value: MetricValue
  readonly namespace?: string | undefined
  readonly timestamp?: Timestamp | undefined
  readonly tags?: MetricTags | undefined
  readonly intervalMs?: number | undefined
  readonly metadata?: EventMetadata | undefined
}

export class MetricEvent {
  name: string
  namespace: string | undefined
  kind: MetricKind
  value: MetricValue
  timestamp: Timestamp | undefined
  /** Owned by the event; `undefined` if there are none. */
  tags: MetricTags | undefined
  intervalMs: number | undefined
  metadata: EventMetadata

  constructor(parts: MetricParts) {
    this.name = parts.name
    this.namespace = parts.namespace
    this.kind = parts.kind
    this.value = parts.value
    this.timestamp = parts.timestamp
    this.tags = parts.tags
    this.intervalMs = parts.intervalMs
    this.metadata = parts.metadata ?? noMetadata
  }

  /** Estimated size as JSON in bytes. */
  get size(): number {
    return metricSize(this)
  }

  copy(): MetricEvent {
    return new MetricEvent({ ...this, tags: this.tags === undefined ? undefined : new Map(this.tags) })
  }
}

/** The value that `metric_tag_values: single` writes for a tag: the last one that is not null; undefined if there is none. */
export function singleTagValue(value: TagValue): string | undefined {
  if (typeof value === 'string') return value
  if (value === null) return undefined
  for (let index = value.length - 1; index >= 0; index--) {
    const item = value[index]
    if (typeof item === 'string') return item
  }
  return undefined
}
