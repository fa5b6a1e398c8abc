// The kinds as CustomResourceDefinitions. `npm run generate` writes them to crds/ and into the charts; do not edit them.

import { kinds, type ResourceKind } from './kinds.ts'
import { group, version, versions } from './object.ts'
import type { ValidationRule } from './schema.ts'

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
  const kept = Object.entries(inWords(value as Node)).filter(([key]) => !ownKeywords.has(key))
  return Object.fromEntries(kept.map(([key, item]) => [key, structural(item)]))
}

type Node = Readonly<Record<string, unknown>>

/**
 * A text with a rule in place of its pattern: for a pattern, the message of the API server contains the regular expression, for a rule, our
 * words. Quantities and shares keep their pattern. They may be numbers or texts without a maximum length, so the API server would estimate
 * that a rule costs more than it allows.
 */
function inWords(node: Node): Node {
  const { pattern, ...rest } = node
  const expected = node['x-expected']
  if (node['type'] !== 'string' || typeof pattern !== 'string' || typeof expected !== 'string') return node
  const rules = (node['x-kubernetes-validations'] ?? []) as readonly ValidationRule[]
  const rule = { rule: `self.matches('${pattern.replaceAll(/[\\']/g, '\\$&')}')`, message: `must be ${expected}` }
  return { ...rest, 'x-kubernetes-validations': [...rules, rule] }
}
