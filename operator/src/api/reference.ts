// The kinds as people and editors read them: a page for each kind, the text for one field, and a JSON Schema of all kinds. All of
// them are generated from the declarations.

import { stringify } from 'yaml'
import { ownKeywords, rootSchema } from './crds.ts'
import { exampleOf, examples } from './examples.ts'
import { kinds, type ResourceKind } from './kinds.ts'
import { apiVersion, apiVersions } from './object.ts'

type Node = Readonly<Record<string, unknown>>

/** Finds a kind by any name that `kubectl` accepts. */
export function kindNamed(word: string): ResourceKind | undefined {
  const wanted = word.toLowerCase()
  return kinds.find(({ kind, plural, shortName }) => [kind.toLowerCase(), plural, shortName].includes(wanted))
}

/**
 * The schema of whole objects of a kind, including declared details that the API server's schema omits, such as
 * defaults.
 */
function declared(kind: ResourceKind): Node {
  const root: Node = rootSchema(kind)
  const described = {
    apiVersion: { type: 'string', description: `\`${apiVersions.join('` or `')}\`.` },
    kind: { type: 'string', description: `\`${kind.kind}\`.` },
    metadata: { type: 'object', description: objectMeta(kind) },
  }
  return { ...root, properties: { ...described, spec: kind.spec, status: kind.status } }
}

const objectMeta = ({ namespaced }: ResourceKind) =>
  `Name, ${namespaced ? 'namespace, ' : ''}labels and annotations, as of every object of Kubernetes.`

/** The page of a kind: every field with type, default and meaning. */
export function kindPage(kind: ResourceKind): string {
  const { spec, status } = membersOf(declared(kind))
  const scope = kind.namespaced ? 'Namespaced.' : 'Of the whole cluster.'
  const section = (name: string, node: Node | undefined) =>
    node === undefined ? [] : [`## ${name}`, lines(kind, node, name).join('\n')]
  const served = apiVersions.map((name) => `\`${name}\``).join(' or ')
  const head = `${kind.about} ${scope} \`apiVersion\`: ${served}; short name \`${kind.shortName}\`.`
  const all = `\`penstock explain ${kind.kind}.spec\` prints a part of this page.`
  const shown = [
    '## Examples',
    ...resourcesOf(kind).map((resource) => `\`\`\`yaml\n${stringify(resource, { lineWidth: 0 })}\`\`\``),
  ]
  return `${[`# ${kind.kind}`, head, all, ...section('spec', spec), ...section('status', status), ...shown].join('\n\n')}\n`
}

/** The examples of a kind as complete resources. Together they contain every field of its spec. */
export function resourcesOf({ kind, namespaced }: ResourceKind): readonly object[] {
  return (examples[kind] ?? []).map(({ name, spec }) => {
    return { apiVersion, kind, metadata: { name, ...(namespaced ? { namespace: 'shop' } : {}) }, spec }
  })
}

/** The documentation of a field such as `spec.sources[0].multiline`, or suggestions if there is no such field. */
export function fieldText(
  kind: ResourceKind,
  path: string,
): { readonly ok: true; readonly text: string } | { readonly ok: false; readonly known: readonly string[] } {
  const words = path.split('.').flatMap((word) => word.replace(/\[\w*\]/g, '') || [])
  let node: Node = declared(kind)
  let required: readonly string[] = []
  for (const word of words) {
    const below = itemOf(node)
    const members = membersOf(below)
    const next = Object.hasOwn(members, word) ? members[word] : (below['additionalProperties'] as Node | undefined)
    if (next === undefined) return { ok: false, known: Object.keys(members) }
    required = ((below['required'] ?? []) as string[]).includes(word) ? ['required'] : []
    node = next
  }
  const label = [kind.kind, ...words].join('.')
  const facts = [typeText(node), ...required, ...limitTexts(node)].join(', ')
  const below = Object.entries(membersOf(itemOf(node)))
  const fields = below.map(
    ([name, member]) => `  ${name}  (${typeText(member)})\n      ${meaningOf(kind, [...words, name], member)}`,
  )
  const parts = [
    `${label}  (${facts})`,
    meaningOf(kind, words, node),
    ...(fields.length > 0
      ? [`Fields:\n${fields.join('\n')}`, `\`penstock explain ${label}.NAME\` describes one of them.`]
      : []),
  ]
  return { ok: true, text: `${parts.filter((part) => part !== '').join('\n\n')}\n` }
}

/** The fields of specs with a name, in any case, such as `Pipeline.spec.sources.multiline` for `multiline` or `sources.multiline`. */
export function fieldsNamed(name: string): readonly string[] {
  const found: string[] = []
  const ending = `.${name.toLowerCase()}`
  const walk = (node: Node, path: string) => {
    for (const [member, below] of Object.entries(membersOf(itemOf(node)))) {
      if (`${path}.${member}`.toLowerCase().endsWith(ending)) found.push(`${path}.${member}`)
      walk(below, `${path}.${member}`)
    }
  }
  for (const { kind, spec } of kinds) walk(spec, `${kind}.spec`)
  return found
}

/** JSON Schema of all kinds, for editors. */
export function resourcesSchema(): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Resources of Penstock',
    oneOf: kinds.map((kind) => {
      const properties = membersOf(declared(kind))
      const closed = Object.fromEntries(
        Object.entries(properties).map(([name, node]) => [name, plain(withExamples(kind, [name], node))]),
      )
      return {
        title: kind.kind,
        type: 'object',
        description: kind.about,
        required: ['apiVersion', 'kind', 'metadata', 'spec'],
        properties: { ...closed, apiVersion: { enum: apiVersions }, kind: { const: kind.kind } },
        additionalProperties: false,
      }
    }),
  }
}

/** The schema as a file. */
export function schemaText(): string {
  return `${JSON.stringify(resourcesSchema(), undefined, 2)}\n`
}

/** Converts a structural schema to JSON Schema. Undeclared members are refused, because the API server prunes them. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const node = value as Node
  const kept = Object.entries(node).filter(
    ([key]) => !key.startsWith('x-kubernetes-') && !ownKeywords.has(key) && key !== 'format',
  )
  const isOpen = node['x-kubernetes-preserve-unknown-fields'] === true || node['additionalProperties'] !== undefined
  const isClosed = node['type'] === 'object' && node['properties'] !== undefined && !isOpen
  return {
    ...Object.fromEntries(kept.map(([key, item]) => [key, plain(item)])),
    ...(isClosed ? { additionalProperties: false } : {}),
    ...(node['x-default'] === undefined ? {} : { default: node['x-default'] }),
  }
}

/** Adds the examples of every value below a node, in the `examples` member of JSON Schema. */
function withExamples(kind: ResourceKind, words: readonly string[], node: Node): Node {
  const example = leafExample(kind, words, node)
  if (example !== undefined) return { ...node, examples: [example] }
  if (node['type'] === 'array') return { ...node, items: withExamples(kind, words, node['items'] as Node) }
  const members = Object.entries(membersOf(node))
  if (members.length === 0) return node
  return {
    ...node,
    properties: Object.fromEntries(
      members.map(([name, member]) => [name, withExamples(kind, [...words, name], member)]),
    ),
  }
}

/** The example of a field without subfields. */
function leafExample({ kind }: ResourceKind, words: readonly string[], node: Node): unknown {
  return Object.keys(membersOf(itemOf(node))).length === 0 ? exampleOf(kind, words) : undefined
}

/** The purpose and the value of a field. */
function meaningOf(kind: ResourceKind, words: readonly string[], node: Node): string {
  const description = String(node['description'] ?? '')
  const example = leafExample(kind, words, node)
  return example === undefined ? description : `${description} Example: \`${JSON.stringify(example)}\`.`.trimStart()
}

function lines(kind: ResourceKind, node: Node, path: string): string[] {
  const below = itemOf(node)
  const inner = below === node ? path : `${path}[]`
  const required = (below['required'] ?? []) as string[]
  const own = Object.entries(membersOf(below)).flatMap(([name, member]) => {
    const facts = [typeText(member), ...(required.includes(name) ? ['required'] : []), ...limitTexts(member)].join(', ')
    const field = `${inner}.${name}`
    const words = field.replaceAll('[]', '').split('.')
    return [`- \`${field}\` (${facts}): ${meaningOf(kind, words, member)}`, ...lines(kind, member, field)]
  })
  const values = below['additionalProperties']
  return typeof values === 'object' && values !== null ? [...own, ...lines(kind, values as Node, `${inner}.*`)] : own
}

function membersOf(node: Node): Readonly<Record<string, Node>> {
  return (node['properties'] ?? {}) as Record<string, Node>
}

/** The items of a list, which have the fields. */
function itemOf(node: Node): Node {
  return node['type'] === 'array' ? itemOf(node['items'] as Node) : node
}

function typeText(node: Node): string {
  const values = node['enum'] as readonly string[] | undefined
  if (values !== undefined) return `one of ${values.map((value) => `\`${value}\``).join(', ')}`
  if (node['type'] === 'array') return `list of ${typeText(node['items'] as Node)}`
  if (node['x-kubernetes-int-or-string'] === true) return 'integer or string'
  const each = node['additionalProperties']
  if (typeof each === 'object' && each !== null) return `map of ${typeText(each as Node)}`
  return String(node['type'] ?? 'any value')
}

function limitTexts(node: Node): readonly string[] {
  const fallback = node['x-default']
  const shown = (name: string, text: string) => (node[name] === undefined ? [] : [`${text} ${node[name]}`])
  return [
    ...(fallback === undefined ? [] : [`default \`${JSON.stringify(fallback)}\``]),
    ...shown('minimum', 'at least'),
    ...shown('maximum', 'at most'),
    ...shown('maxItems', 'items at most'),
  ]
}
