// `penstock why` for a deleted pod: for a while, Kubernetes events contain its uid and node, and the agent there reads its files to
// the end and reports its positions.

import type { KubeObject } from '../api/object.ts'
import { objectKey } from '../api/object.ts'
import { type KubeClient, KubeError } from '../kube/client.ts'
import { coreEventType } from '../kube/resource-types.ts'
import { type PipelineAnswer, type PodPosition, readingOf, type WhyReport } from './why-report.ts'

/** The traces of a pod. */
export interface LastSeen {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly node: string
}

type Event = KubeObject & {
  readonly involvedObject?: { readonly uid?: string }
  readonly source?: { readonly component?: string; readonly host?: string }
  readonly lastTimestamp?: string | null
  readonly eventTime?: string | null
}

/** The last pod with a name, from the kubelet's events; undefined if there is no such event, or the user may not read it. */
export async function lastSeen(client: KubeClient, namespace: string, name: string): Promise<LastSeen | undefined> {
  const fieldSelector = `involvedObject.kind=Pod,involvedObject.name=${name}`
  let events: readonly Event[]
  try {
    events = await client.list<Event>(coreEventType, { namespace, fieldSelector })
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return undefined
    throw error
  }
  const at = ({ lastTimestamp, eventTime, metadata }: Event) =>
    Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '') || 0
  const [newest] = events
    .filter(({ source }) => source?.component === 'kubelet' && (source.host ?? '') !== '')
    .toSorted((left, right) => at(right) - at(left))
  const uid = newest?.involvedObject?.uid
  const node = newest?.source?.host
  return uid === undefined || node === undefined ? undefined : { namespace, name, uid, node }
}

/** The Pipelines that still read the files of a deleted pod. */
export async function explainGone(
  { namespace, name, node }: LastSeen,
  positionIn: (kind: string) => Promise<PodPosition>,
): Promise<WhyReport> {
  const kinds = ['Pipeline', 'ClusterPipeline']
  const found = await Promise.all(kinds.map(positionIn))
  const pipelines: PipelineAnswer[] = []
  const unknown: string[] = []
  for (const [index, kind] of kinds.entries()) {
    const answer = found[index] as PodPosition
    if ('problem' in answer) {
      unknown.push(`${kind}s: ${answer.problem}`)
      continue
    }
    for (const pipeline of answer.keys()) {
      const reading = readingOf(answer, pipeline)
      if ('problem' in reading || reading.positions.length === 0) continue
      const key = objectKey(kind === 'Pipeline' ? namespace : undefined, pipeline)
      pipelines.push({ kind, name: key, reads: true, sources: [], obstacles: [], reading })
    }
  }
  const pod = objectKey(namespace, name)
  return {
    pod,
    phase: 'deleted',
    node,
    namespace,
    unread: [],
    unknown,
    hasClusterPipelines: true,
    isGone: true,
    pipelines,
  }
}
