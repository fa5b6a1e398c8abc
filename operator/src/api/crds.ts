// The kinds as CustomResourceDefinitions. `npm run generate` writes them to crds/ and into the charts; do not edit them.

import { kinds, type ResourceKind } from './kinds.ts'
import { group, version, versions } from './object.ts'

/** Internal names that a schema must not contain. */
export const ownKeywords: ReadonlySet<string> = new Set([
  'x-required',
  'x-expected',
  'x-meanwhile',
  'x-default',
  '~type',
])

export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1'
  readonly kind: 'CustomResourceDefinition'
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
  readonly spec: Readonly<Record<string, unknown>>
}

/** All CRDs, in the order of the kinds; `metadata` is added to each. */
export function customResourceDefinitions(
  metadata: { readonly annotations?: Readonly<Record<string, string>> } = {},
): readonly CustomResourceDefinition[] {
  return kinds.map((kind) => definitionOf(kind, metadata))
}

function definitionOf(kind: ResourceKind, metadata: object): CustomResourceDefinition {
  const { plural, singular, shortName } = kind
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, ...metadata },
    spec: {
      group,
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural,
        singular,
        shortNames: [shortName],
        categories: ['penstock'],
      },
      conversion: { strategy: 'None' },
      versions: versions.map((name) => ({
        name,
        served: true,
        storage: name === version,
        schema: { openAPIV3Schema: rootSchema(kind) },
        subresources: { status: {}, ...(kind.scale === undefined ? {} : { scale: kind.scale }) },
        additionalPrinterColumns: kind.columns,
      })),
    },
  }
}

/** The schema of whole objects of a kind, as the API server accepts it. */
export function rootSchema(kind: ResourceKind): Record<string, unknown> {
  return {
    type: 'object',
    description: kind.about,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: structural(kind.spec),
      status: structural(kind.status),
    },
    ...(kind.rules === undefined ? {} : { 'x-kubernetes-validations': kind.rules }),
  }
}

function structural(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(structural)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => !ownKeywords.has(key))
  return Object.fromEntries(kept.map(([key, item]) => [key, structural(item)]))
}
