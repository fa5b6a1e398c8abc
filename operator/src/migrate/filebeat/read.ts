// Finds a Filebeat configuration in a file, a ConfigMap, chart values, or a Beat resource. Names with dots and nested tables mean the
// same, so both become options with dots.

import type { Gap, NamedText, SecretKey } from '../draft.ts'
import type { Part } from '../loki/context.ts'
import { below, flagOf, isMap, itemsOf, type Place, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { embedded, treesOf } from '../loki/yaml.ts'
import { type Argument, withArguments } from './arguments.ts'
import { withReferences } from './variables.ts'

/** Settings below `filebeat`. A table without any of them is something else, such as the values of a chart with this name. */
export const settings: ReadonlySet<string> = new Set([
  ...['inputs', 'prospectors', 'autodiscover', 'modules', 'config', 'registry', 'registry_file', 'registry_flush'],
  ...['shutdown_timeout', 'overwrite_pipelines', 'spool_size', 'idle_timeout', 'publish_async', 'config_dir'],
])

/** Settings of the Filebeat process. */
export const ofProcess: ReadonlySet<string> = new Set([
  ...[
    'logging',
    'http',
    'path',
    'queue',
    'max_procs',
    'name',
    'shutdown_timeout',
    'registry',
    'monitoring',
    'features',
  ],
  ...['seccomp', 'timestamp', 'migration', 'queue_size', 'bulk_queue_size', 'instrumentation', 'gc_percent', 'xpack'],
  ...['keystore', 'management', 'shipper'],
])

/** The parts of a configuration. Settings with other names have an effect only where references read them. */
const sections: ReadonlySet<string> = new Set([
  ...[...ofProcess, 'filebeat', 'output', 'processors', 'fields', 'fields_under_root', 'tags', 'cloud', 'setup'],
])

/** A table in which names with dots are replaced by nested tables. */
export function expanded(tree: Tree): Tree {
  if (Array.isArray(tree.value)) return { ...tree, value: tree.value.map(expanded) }
  if (!isMap(tree)) return typeof tree.value === 'string' ? { ...tree, value: literal(tree.value) } : tree
  const merged = new Map<string, Tree>()
  for (const [name, item] of tree.value) put(merged, name.split('.'), expanded(item), item)
  return { ...tree, value: merged }
}

/** The text without escapes of signs (`$$`, `$}`), and variables without the text of the error for a missing value: `${NAME:?text}`. */
const literal = (text: string): string =>
  text
    .replace(/(\$\{[^{}:]+):\?[^}]*\}/g, '$1}')
    .replace(/\$\$(?!\{)|\$\}/g, (escaped) => (escaped === '$$' ? '$' : '}'))

function put(into: Map<string, Tree>, path: readonly string[], item: Tree, place: Place): void {
  const [first = '', ...rest] = path
  const known = into.get(first)
  if (rest.length === 0) {
    if (isMap(known) && isMap(item)) {
      const all = new Map(known.value)
      for (const [name, each] of item.value) put(all, [name], each, each)
      into.set(first, { ...known, value: all })
    } else into.set(first, item)
    return
  }
  const all = new Map(isMap(known) ? known.value : [])
  put(all, rest, item, place)
  into.set(first, { file: place.file, line: known?.line ?? place.line, value: all })
}

/** Filebeat reads YAML 1.1. */
export const asFilebeat = { hasOldBooleans: true } as const

/** The lists in which resources are, by the kind of the list: a list of Kubernetes, or a template of OpenShift. */
const wrappers: ReadonlyMap<string, string> = new Map([
  ['List', 'items'],
  ['BeatList', 'items'],
  ['Template', 'objects'],
])

/** The documents of a text, and the resources in lists. */
export const documentsOf = (given: NamedText, gaps: Gap[]): readonly Tree[] =>
  treesOf(given, gaps, asFilebeat).flatMap((tree) => {
    const list = wrappers.get(textOf(below(tree, 'kind')) ?? '')
    return list === undefined ? [tree] : itemsOf(below(tree, list))
  })

/**
 * The configurations in a text.
 * @param started the arguments with which Filebeat starts
 * @param referring the resources whose configurations are in Secrets
 */
export function configsOf(
  given: NamedText,
  gaps: Gap[],
  started: readonly Argument[] = [],
  referring: ReadonlyMap<string, Tree> = new Map(),
): readonly Tree[] {
  return documentsOf(given, gaps).flatMap((tree): readonly Tree[] => {
    const kind = below(tree, 'kind')?.value
    if (kind === 'ConfigMap') return textsBelow(below(tree, 'data'), gaps, started)
    if (kind === 'Secret') {
      const resource = referring.get(textOf(below(tree, 'metadata', 'name')) ?? '')
      return (['stringData', 'data'] as const)
        .flatMap((name) => textsBelow(secretFiles(tree, name), gaps, started))
        .map((config) => (resource === undefined ? config : withReferred(config, resource)))
    }
    const own = expanded(tree)
    if (isConfig(own)) return [withCloud(settled(own, gaps, started))]
    const ofResource = below(own, 'spec', 'config')
    if (ofResource !== undefined && isResource(tree)) return [withReferred(settled(ofResource, gaps, started), tree)]
    // An older chart contains the configuration itself, which `overrideConfig` replaces.
    const values = [below(own, 'overrideConfig'), below(own, 'config')].find(
      (each) => each !== undefined && isConfig(each),
    )
    if (kind === undefined && values !== undefined) return [withCloud(settled(values, gaps, started))]
    return ofChart(tree, gaps, started)
  })
}

/** The `Beat` resources that name the Secret with their configuration, by this name. */
export const referringIn = (files: readonly NamedText[]): ReadonlyMap<string, Tree> =>
  new Map(
    files
      .filter(({ text }) => /\bconfigRef\b/.test(text))
      .flatMap((given) => documentsOf(given, []))
      .flatMap((tree): [string, Tree][] => {
        const name = textOf(below(tree, 'spec', 'configRef', 'secretName'))
        return name === undefined || !isResource(tree) ? [] : [[name, tree]]
      }),
  )

/** The configurations in the values of the chart. It runs a DaemonSet, and on request a Deployment. */
function ofChart(values: Tree, gaps: Gap[], started: readonly Argument[]): readonly Tree[] {
  const workloads = ['daemonset', 'deployment'] as const
  const isOn = (name: string): boolean => flagOf(below(values, name, 'enabled')) ?? name === 'daemonset'
  const given = workloads.flatMap((name) => {
    const files = below(values, name, 'filebeatConfig')
    return files === undefined ? [] : [{ name, files, isOn: isOn(name) }]
  })
  const shared = textsBelow(below(values, 'filebeatConfig'), gaps, started)
  // A configuration that nothing runs is the only one that can be meant.
  const isAny = shared.length > 0 || given.some((each) => each.isOn)
  return given
    .flatMap(({ name, files, isOn: runs }) => {
      if (runs || !isAny) return textsBelow(files, gaps, started)
      const { file, line } = files
      const reason = `the chart does not run this configuration, because \`${name}.enabled\` is not true`
      const nearest = 'Set it to true, and convert again, if the configuration is needed.'
      gaps.push({ file, line, subject: `${name}.filebeatConfig`, reason, nearest, isReplaced: true })
      return []
    })
    .concat(shared)
}

/** Whether a document is a `Beat` resource, or the values of the chart that writes one, which have no kind. */
function isResource(tree: Tree): boolean {
  const kind = textOf(below(tree, 'kind'))
  const type = textOf(below(tree, 'spec', 'type'))
  return type === 'filebeat' ? kind === 'Beat' || kind === undefined : kind === 'Beat' && type === undefined
}

/** The configuration with the settings of arguments, and with its own settings in place of references to them. */
function settled(given: Tree, gaps: Gap[], started: readonly Argument[]): Tree {
  const { config, read } = withReferences(withArguments(given, started), gaps)
  if (!isMap(config)) return config
  const parts = [...config.value].filter(([name]) => sections.has(name) || !read.has(name))
  return { ...config, value: new Map(parts) }
}

/** The address for `cloud.id`, whose second part is the base64 text of a host and a store name. */
export function cloudAddress(id: string): string | undefined {
  const encoded = /^(?:[^:]*:)?([A-Za-z0-9+/=]+)$/.exec(id)?.[1]
  const [host, store] = Buffer.from(encoded ?? '', 'base64')
    .toString()
    .split('$')
  if (!host || !store) return undefined
  const [name, port = '443'] = host.split(':')
  return `https://${store.split(':')[0]}.${name}:${port}`
}

/** A variable for the address of a deployment whose id is in a variable. */
export function cloudVariable(id: string): string | undefined {
  const [, name] = /^\$\{(\w+)\}$/.exec(id) ?? []
  return name === undefined ? undefined : `\${${name}_ADDRESS}`
}

/** The user and the password of a deployment, which may be in one variable. */
function cloudLogin(auth: string): readonly string[] {
  const [, variable] = /^\$\{(\w+)\}$/.exec(auth) ?? []
  if (variable !== undefined) return [`\${${variable}_USER}`, `\${${variable}_PASSWORD}`]
  return /^([^:]*):(.*)$/.exec(auth)?.slice(1) ?? []
}

/**
 * The configuration with the output for `cloud.id`, whose address and credentials replace those of `output.elasticsearch`. Those in variables
 * do so only if there is no other address.
 */
function withCloud(config: Tree): Tree {
  const cloud = below(config, 'cloud')
  const output = below(config, 'output')
  const given = below(output, 'elasticsearch')
  const id = textOf(below(cloud, 'id')) ?? ''
  const address = cloudAddress(id) ?? (below(given, 'hosts') === undefined ? cloudVariable(id) : undefined)
  if (!isMap(config) || cloud === undefined || address === undefined) return config
  if (isMap(output) && output.value.size > 0 && given === undefined) return config
  const { file, line } = cloud
  const tree = (value: Tree['value']): Tree => ({ file, line, value })
  const [user, password] = cloudLogin(textOf(below(cloud, 'auth')) ?? '')
  const options = new Map(isMap(given) ? given.value : [])
  options.set('hosts', tree([tree(address)]))
  if (user !== undefined && password !== undefined) {
    options.set('username', tree(user))
    options.set('password', tree(password))
  }
  const elasticsearch = { ...(given ?? tree(null)), value: options }
  const whole = { ...(output ?? tree(null)), value: new Map([['elasticsearch', elasticsearch]]) }
  return { ...config, value: new Map([...config.value, ['output', whole]]) }
}

/** The variable for the certificate authority of a store that the Beats operator manages. */
const authority = 'ELASTICSEARCH_CA'

const hasOwnTrust = (output: Tree | undefined) =>
  below(output, 'ssl') !== undefined || textsOf(below(output, 'hosts')).length > 0

/** Variables for the keys of a Secret that describes a store which the Beats operator does not manage. */
const ofStore: Readonly<Record<string, string>> = {
  ELASTICSEARCH_URL: 'url',
  ELASTICSEARCH_USERNAME: 'username',
  ELASTICSEARCH_PASSWORD: 'password',
}

/** The Secrets in which the Beats operator finds the addresses, users and certificate authorities of the stores that resources refer to. */
export function authoritiesIn(given: NamedText): ReadonlyMap<string, SecretKey> {
  const found = new Map<string, SecretKey>()
  if (!/elasticsearchRef/.test(given.text)) return found
  for (const tree of documentsOf(given, [])) {
    const reference = below(tree, 'spec', 'elasticsearchRef')
    const name = textOf(below(reference, 'name'))
    const secret = textOf(below(reference, 'secretName'))
    if (!isResource(tree) || reference === undefined) continue
    const { file, line } = reference
    if (secret !== undefined)
      for (const [variable, key] of Object.entries(ofStore))
        found.set(variable, { name: secret, key, namespace: storeOf(reference, tree), file, line })
    if (name === undefined) continue
    found.set(authority, {
      name: `${name}-es-http-certs-public`,
      key: 'ca.crt',
      namespace: storeOf(reference, tree),
      file,
      line,
    })
  }
  return found
}

/** The namespace of the store that a resource refers to. */
const storeOf = (reference: Tree, resource: Tree): string =>
  textOf(below(reference, 'namespace')) ?? textOf(below(resource, 'metadata', 'namespace')) ?? 'default'

/** The output that the Beats operator (ECK) generates for a reference, with variables for the user that it creates. */
function withReferred(config: Tree, resource: Tree): Tree {
  const reference = below(resource, 'spec', 'elasticsearchRef')
  const name = textOf(below(reference, 'name'))
  const isOwn = textOf(below(reference, 'secretName')) !== undefined
  if (!isMap(config) || reference === undefined || (name === undefined && !isOwn)) return config
  const given = below(config, 'output')
  const own = below(given, 'elasticsearch')
  if (isMap(given) && given.value.size > 0 && !isMap(own)) return config
  const { file, line } = reference
  const tree = (value: Tree['value']): Tree => ({ file, line, value })
  const namespace = storeOf(reference, resource)
  // Options of the resource take precedence over generated ones.
  const output = new Map<string, Tree>([
    [
      'hosts',
      tree([tree(isOwn ? '$'.concat('{ELASTICSEARCH_URL}') : `https://${name}-es-http.${namespace}.svc:9200`)]),
    ],
    // Filebeat accepts either a key or a user.
    ...(below(own, 'api_key') === undefined
      ? ([
          ['username', tree('$'.concat('{ELASTICSEARCH_USERNAME}'))],
          ['password', tree('$'.concat('{ELASTICSEARCH_PASSWORD}'))],
        ] as const)
      : []),
    ...(isOwn || hasOwnTrust(own)
      ? []
      : [['ssl', tree(new Map([['certificate_authorities', tree('$'.concat('{', authority, '}'))]]))] as const]),
    ...(isMap(own) ? own.value : []),
  ])
  const elasticsearch = { ...(own ?? tree(null)), value: output }
  const whole = { ...(given ?? tree(null)), value: new Map([['elasticsearch', elasticsearch]]) }
  return { ...config, value: new Map([...config.value, ['output', whole]]) }
}

/** The files of a Secret; those below `data` are decoded. */
function secretFiles(secret: Tree, name: 'stringData' | 'data'): Tree | undefined {
  const files = below(secret, name)
  if (name === 'stringData' || !isMap(files)) return files
  const decoded = [...files.value].map(([key, item]): [string, Tree] => [
    key,
    { ...item, value: Buffer.from(textOf(item) ?? '', 'base64').toString('utf8') },
  ])
  return { ...files, value: new Map(decoded) }
}

function textsBelow(files: Tree | undefined, gaps: Gap[], started: readonly Argument[]): readonly Tree[] {
  if (!isMap(files)) return []
  return [...files.value].flatMap(([name, item]) => {
    if (!/\.ya?ml$/.test(name) && !/^filebeat[.:]/m.test(textOf(item) ?? '')) return []
    const found = embedded(item, gaps, asFilebeat)
    const config = found === undefined ? undefined : expanded(found)
    if (config === undefined) return []
    // A file with inputs or modules contains a list, and the configuration names it.
    return isConfig(config) ? [withCloud(settled(config, gaps, started))] : []
  })
}

function isConfig(tree: Tree): boolean {
  const filebeat = below(tree, 'filebeat')
  const hasSettings = isMap(filebeat) && [...filebeat.value.keys()].some((name) => settings.has(String(name)))
  return hasSettings || isMap(below(tree, 'output'))
}

export function isFilebeat(given: NamedText): boolean {
  if (
    !/\.ya?ml$/i.test(given.file) ||
    !/(?:^|[{,])\s*(?:"?filebeat"?[.:]|"filebeat\.\w|"?filebeat\.yml"?:)/m.test(given.text)
  ) {
    if (!/kind: Beat\b|type: filebeat\b/.test(given.text)) return false
  }
  return configsOf(given, []).length > 0
}

/** A table as a part whose option names contain dots. */
export function partOf(name: string, tree: Tree): Part {
  const options = new Map<string, Tree>()
  const walk = (prefix: string, item: Tree): void => {
    if (!isMap(item)) return
    for (const [key, each] of item.value) {
      const path = prefix === '' ? key : `${prefix}.${key}`
      if (isMap(each) && each.value.size > 0 && !isWhole(path)) walk(path, each)
      else options.set(path, each)
    }
  }
  // Labels are a table of user-defined names in one processor, and options in others.
  const isWhole = (path: string) => whole.has(path) || (path === 'labels' && name === 'add_labels')
  walk('', tree)
  return { name, file: tree.file, line: tree.line, tree: { file: tree.file, line: tree.line, value: options } }
}

/** Options that are tables with user-defined names. */
const whole = new Set(['fields', 'mappings', 'when', 'headers', 'parameters', 'target_fields', 'template', 'ilm'])
