// The fields about pod, namespace and node: the options that place them, and the object with the fields of one container. This
// object is created once for each container and shared by all its events, because values are immutable.

import { parsePath, setPath } from '../../event/path.ts'
import type { Value, ValueObject } from '../../event/value.ts'
import { fieldPath, group, oneOf } from '../../schema/options.ts'
import type { Container, Pod } from './pod-metadata.ts'

const podFieldTexts = {
  container_id: 'id of the container, with the name of its runtime',
  container_image: 'image of the container, as the pod names it',
  container_image_id: 'image of the container by its digest',
  container_name: 'name of the container',
  pod_annotations: 'annotations of the pod',
  pod_ip: 'address of the pod',
  pod_ips: 'addresses of the pod',
  pod_labels: 'labels of the pod',
  pod_name: 'name of the pod',
  pod_namespace: 'namespace of the pod',
  pod_node_name: 'name of the node that the pod runs on',
  pod_owner: 'kind and name of the owner of the pod, such as `ReplicaSet/web-5d4`',
  pod_uid: 'uid of the pod',
} as const

/** Fields that events only get if their path is set. */
const optionalFieldTexts = {
  pod_creation_timestamp: 'time at which the pod was created, as RFC 3339 text',
} as const

export type PodField = keyof typeof podFieldTexts | keyof typeof optionalFieldTexts

const allFieldTexts: Readonly<Record<PodField, string>> = { ...podFieldTexts, ...optionalFieldTexts }
const allFields = Object.keys(allFieldTexts) as PodField[]

/** How much metadata each event gets. */
export type MetadataPreset = 'full' | 'lean'

/** The origin and the owner of a log: the fields that people search by. */
const leanFields: ReadonlySet<string> = new Set<PodField>([
  'container_image',
  'container_name',
  'pod_labels',
  'pod_name',
  'pod_namespace',
  'pod_node_name',
  'pod_owner',
])

export const metadataPreset = () =>
  oneOf(
    ['full', 'lean'],
    `Which fields are added to each event. \`lean\` omits \`file\` and the fields that few people search by, which makes events several hundred bytes smaller. It adds ${[...leanFields].map((name) => `\`${name}\``).join(', ')}, and every field with a path other than its default.`,
    { default: 'full' },
  )

/** The origin fields that operator-managed agents keep below `%vector.orchestrator`, where no program can write. */
export const capturedFields: readonly string[] = [...Object.keys(podFieldTexts), 'namespace_labels', 'node_labels']

function field(name: string, text: string) {
  return fieldPath(`Field for the ${text}. Empty: none.`, { default: defaultPath(name) })
}

function defaultPath(name: string): string {
  return Object.hasOwn(optionalFieldTexts, name) ? '' : `.orchestrator.${name}`
}

export const podAnnotationFields = () => {
  const members = {} as { [K in PodField]: ReturnType<typeof field> }
  for (const name of allFields) members[name] = field(name, allFieldTexts[name])
  return group(members, 'Fields for the metadata of the pod.', { aliases: ['annotation_fields'] })
}

export const namespaceAnnotationFields = () =>
  group({ namespace_labels: field('namespace_labels', 'labels of the namespace') }, 'Fields for the namespace.')

export const nodeAnnotationFields = () =>
  group({ node_labels: field('node_labels', 'labels of the node') }, 'Fields for the node.')

export interface Subject {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly container: string
  readonly pod: Pod | undefined
  readonly namespaceLabels: ValueObject | undefined
  readonly nodeLabels: ValueObject | undefined
}

export interface Annotator {
  readonly namespaceLabels: boolean
  readonly nodeLabels: boolean
  /** Writes the metadata of a container into an object. */
  annotate(fields: ValueObject, subject: Subject): void
}

export function compileAnnotator(
  podFields: Readonly<Record<PodField, string>>,
  namespaceLabels: string,
  nodeLabels: string,
  preset: MetadataPreset,
): Annotator {
  const steps: { path: readonly (string | number)[]; read: (subject: Subject) => Value | undefined }[] = []
  /** True if the field is added. */
  const add = (name: string, text: string, read: (subject: Subject) => Value | undefined): boolean => {
    if (text === '' || (preset === 'lean' && text === defaultPath(name) && !leanFields.has(name))) return false
    const path = parsePath(text)
    if (path?.root === 'event' && path.segments.length > 0) steps.push({ path: path.segments, read })
    return true
  }
  for (const name of allFields) add(name, podFields[name], readers[name])
  return {
    namespaceLabels: add('namespace_labels', namespaceLabels, (subject) => subject.namespaceLabels),
    nodeLabels: add('node_labels', nodeLabels, (subject) => subject.nodeLabels),
    annotate(fields, subject) {
      for (const { path, read } of steps) {
        const value = read(subject)
        if (value !== undefined) setPath(fields, path, value)
      }
    },
  }
}

/** All fields at their default paths. */
export function defaultAnnotator(): Annotator {
  const fields = {} as Record<PodField, string>
  for (const name of allFields) fields[name] = defaultPath(name)
  return compileAnnotator(fields, defaultPath('namespace_labels'), defaultPath('node_labels'), 'full')
}

function container(subject: Subject): Container | undefined {
  return subject.pod?.containers.get(subject.container)
}

// If the pod is unknown, the names come from the path.
const readers: Readonly<Record<PodField, (subject: Subject) => Value | undefined>> = {
  container_id: (subject) => container(subject)?.id,
  container_image: (subject) => container(subject)?.image,
  container_image_id: (subject) => container(subject)?.imageId,
  container_name: (subject) => subject.container,
  pod_annotations: (subject) => nonEmpty(subject.pod?.annotations),
  pod_creation_timestamp: (subject) => subject.pod?.created,
  pod_ip: (subject) => subject.pod?.ip,
  pod_ips: (subject) => subject.pod?.ips,
  pod_labels: (subject) => nonEmpty(subject.pod?.labels),
  pod_name: (subject) => subject.pod?.name ?? subject.name,
  pod_namespace: (subject) => subject.pod?.namespace ?? subject.namespace,
  pod_node_name: (subject) => subject.pod?.node,
  pod_owner: (subject) => subject.pod?.owner,
  pod_uid: (subject) => (subject.pod === undefined ? subject.uid : subject.pod.uid),
}

function nonEmpty(object: ValueObject | undefined): ValueObject | undefined {
  return object === undefined || Object.keys(object).length === 0 ? undefined : object
}
