// The parts that Kubernetes objects of every kind share.

export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly generation?: number
  readonly resourceVersion?: string
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly OwnerReference[]
  readonly finalizers?: readonly string[]
  readonly managedFields?: readonly unknown[]
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** An object of a kind of ours. */
export interface CustomResource<Spec, Status> extends KubeObject {
  readonly spec: Spec
  readonly status?: Status
}

/** A kind as the API server serves it. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
}

export const group = 'penstock.dev'
/**
 * The served versions, newest first. All have the same schema, so the API server converts an object by replacing its `apiVersion`.
 */
export const versions = ['v1beta1', 'v1alpha1'] as const
/**
 * The version in which objects are stored, and which all parts of Penstock read and write. The previous release only knows this version:
 * after a downgrade, it could not read objects in another version, and the API server would refuse its CRDs.
 */
export const version = 'v1alpha1' satisfies (typeof versions)[number]
export const apiVersion = `${group}/${version}`
/** `penstock.dev/v1beta1`, `penstock.dev/v1alpha1` */
export const apiVersions: readonly string[] = versions.map((name) => `${group}/${name}`)

/** `penstock.dev/v1alpha1`, `v1` */
export function apiVersionOf(type: ResourceType): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`
}

/** `shop/checkout`, `loki`: unique within a kind. */
export function objectKey(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`
}

export function keyOf(object: KubeObject): string {
  return objectKey(object.metadata.namespace, object.metadata.name)
}
