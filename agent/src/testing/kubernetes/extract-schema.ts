// Extracts the part of a Kubernetes API schema that the agent uses, for files such as `1.19.txt` in this folder:
//
//   go mod download k8s.io/kubernetes@v1.19.16
//   npx node --conditions=source agent/src/testing/kubernetes/extract-schema.ts v1.19.16 FOLDER/api/openapi-spec/swagger.json > 1.19.txt

import { readFileSync } from 'node:fs'

interface Property {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly items?: Property
  readonly additionalProperties?: Property
}

interface Definition extends Property {
  readonly properties?: Readonly<Record<string, Property>>
  readonly required?: readonly string[]
}

interface Swagger {
  readonly definitions: Readonly<Record<string, Definition>>
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** Kinds that the agent reads, and kinds of its manifest. */
const kinds = [
  'io.k8s.api.core.v1.Pod',
  'io.k8s.api.core.v1.Namespace',
  'io.k8s.api.core.v1.Node',
  'io.k8s.api.events.v1.Event',
  'io.k8s.api.core.v1.ServiceAccount',
  'io.k8s.api.core.v1.ConfigMap',
  'io.k8s.api.rbac.v1.ClusterRole',
  'io.k8s.api.rbac.v1.ClusterRoleBinding',
  'io.k8s.api.apps.v1.DaemonSet',
]
const resources =
  /^(?:\/version\/|\/api\/v1\/(?:watch\/)?(?:namespaces\/\{namespace\}\/)?(?:pods|namespaces|nodes)(?:\/\{name\})?|\/apis\/events\.k8s\.io\/v1\/(?:namespaces\/\{namespace\}\/)?events)$/

const [version, path] = process.argv.slice(2)
if (version === undefined || path === undefined) throw new Error('Usage: extract-schema.ts VERSION SWAGGER_FILE')
const swagger = JSON.parse(readFileSync(path, 'utf8')) as Swagger

const shortName = (reference: string) => reference.slice(reference.lastIndexOf('.') + 1)
const found = new Map<string, { readonly name: string; readonly definition: Definition }>()
for (const kind of kinds) add(kind)

function add(name: string): void {
  const short = shortName(name)
  const known = found.get(short)
  if (known !== undefined && known.name !== name) throw new Error(`${known.name} and ${name} have the same short name.`)
  const definition = swagger.definitions[name]
  if (known !== undefined || definition === undefined) return
  found.set(short, { name, definition })
  for (const property of Object.values(definition.properties ?? {})) typeOf(property)
}

/** A type as one word, such as `string`, `[Container]` or `{string}`. */
function typeOf(property: Property): string {
  if (property.$ref !== undefined) {
    const name = property.$ref.replace('#/definitions/', '')
    add(name)
    return shortName(name)
  }
  if (property.items !== undefined) return `[${typeOf(property.items)}]`
  if (property.additionalProperties !== undefined) return `{${typeOf(property.additionalProperties)}}`
  return property.format === 'int-or-string' ? 'string|integer' : (property.type ?? 'any')
}

const lines = [
  `# The part of the Kubernetes ${version} API that the agent uses. Extracted by extract-schema.ts from api/openapi-spec/swagger.json`,
  '# of https://github.com/kubernetes/kubernetes, which is licensed under Apache-2.0. Do not edit.',
  '# Types: `name:type`, with `!` if required. Requests: path, then query parameters.',
]
for (const [short, { definition }] of [...found].sort(([a], [b]) => (a < b ? -1 : 1))) {
  const { properties, required = [] } = definition
  const members = Object.entries(properties ?? {}).map(
    ([name, property]) => `${name}${required.includes(name) ? '!' : ''}:${typeOf(property)}`,
  )
  lines.push(properties === undefined ? `type ${short} = ${typeOf(definition)}` : `type ${short} ${members.join(' ')}`)
}
for (const [request, operations] of Object.entries(swagger.paths)) {
  if (!resources.test(request) || operations['get'] === undefined) continue
  const shared = (operations['parameters'] ?? []) as readonly { readonly in: string; readonly name: string }[]
  const own = ((operations['get'] as { parameters?: typeof shared }).parameters ?? []) as typeof shared
  const names = [...shared, ...own].filter((parameter) => parameter.in === 'query').map(({ name }) => name)
  lines.push(['get', request.replace(/\/$/, ''), ...names].join(' '))
}
process.stdout.write(`${lines.join('\n')}\n`)
