// `penstock diff -f PATH`: shows the changes for agents if the resources were applied. It compiles the given resources and those in
// the cluster, and compares the configurations. The exit code is 1 if they differ, as for diff.

import { PenstockError } from '@penstock/agent/errors'
import type { Flags } from '@penstock/agent/program'
import { listOf, tableOf } from '@penstock/agent/schema'
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import { stringify } from 'yaml'
import { kindOf } from '../api/kinds.ts'
import { compileResources } from '../compile/config.ts'
import { loadResources, type Resource, resourceOf } from '../compile/resources.ts'
import { type KubeClient, KubeError } from '../kube/client.ts'
import { helpOf, parseFlags, resourceOptions, resourcePaths } from './arguments.ts'
import { connect, connectionOptions, namespaceOption, typeOf } from './cluster.ts'
import { printProblems } from './problems.ts'

export const options = {
  ...resourceOptions,
  ...namespaceOption('of resources that name none'),
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock diff [-f] PATH… [FLAGS]

Shows what applying resources would change for the agents. Values of Secrets are shown as ***. Exit code 1 if there is a difference.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const paths = resourcePaths(values.file, words)
  const { client, namespace } = await connect(values)
  const loaded = loadResources(paths, namespace, values.recursive)
  const files = loaded.resources.filter(({ kind }) => kindOf(kind) !== undefined)
  const live: Resource[] = []
  for (const { kind, namespace: own, name } of files) {
    const type = kindOf(kind)
    const object = type === undefined ? undefined : await client.get(type, own === '' ? undefined : own, name)
    if (object !== undefined) live.push(resourceOf({ ...object, kind }))
  }
  // Pipelines that use shared objects of the files, and shared objects that the files refer to, come from the cluster, on both sides.
  const named = new Set(files.map(nameOf))
  const users = (await usersOf(client, files)).filter((resource) => !named.has(nameOf(resource)))
  const shared = (await sharedResources(client, [...files, ...live, ...users])).filter(
    (resource) => !named.has(nameOf(resource)),
  )
  shared.push(...users)
  const compiling = { ownMachine: false, redacted: true }
  const after = compileResources([...loaded.resources, ...shared], compiling)
  if (!printProblems([...loaded.problems, ...after.problems.filter((problem) => problem.file !== undefined)])) return 78
  const before = live.length + users.length === 0 ? undefined : compileResources([...live, ...shared], compiling)
  const [old, next] = [comparableText(before?.config), comparableText(after.config)]
  if (old === next) {
    console.log('No difference.')
    return 0
  }
  process.stdout.write(
    createTwoFilesPatch('in the cluster', paths.join(', '), old, next, undefined, undefined, {
      headerOptions: FILE_HEADERS_ONLY,
    }),
  )
  return 1
}

const nameOf = ({ kind, namespace, name }: Resource) => `${kind} ${namespace}/${name}`

const sharedKinds: readonly string[] = ['ClusterSource', 'ClusterSink', 'Source', 'Sink']

/** The Pipelines of the cluster that refer to shared objects of the files. */
async function usersOf(client: KubeClient, files: readonly Resource[]): Promise<Resource[]> {
  const given = files.filter(({ kind }) => sharedKinds.includes(kind))
  const [first] = given
  if (first === undefined) return []
  const isForAll = given.some(({ namespace }) => namespace === '')
  const namespaces = isForAll ? [undefined] : new Set(given.map(({ namespace }) => namespace))
  const found: Resource[] = []
  for (const kind of isForAll ? ['Pipeline', 'ClusterPipeline'] : ['Pipeline'])
    for (const namespace of namespaces)
      found.push(...(await listed(client, kind, namespace, `${first.kind} ${first.name} may be used by Pipelines`)))
  return found.filter((pipeline) =>
    given.some(
      ({ kind, name, namespace }) =>
        (namespace === '' || namespace === pipeline.namespace) && refersTo(pipeline, kind, name),
    ),
  )
}

/** The shared objects of the referenced kinds: reading other kinds would need rights unnecessarily. */
async function sharedResources(client: KubeClient, resources: readonly Resource[]): Promise<Resource[]> {
  const namespaces = new Set(resources.map((resource) => resource.namespace).filter((each) => each !== ''))
  const found: Resource[] = []
  for (const kind of sharedKinds) {
    const type = kindOf(kind)
    const user = resources.find((resource) => refersTo(resource, kind))
    if (type === undefined || user === undefined) continue
    for (const namespace of type.namespaced ? namespaces : [undefined])
      found.push(...(await listed(client, kind, namespace, `${user.kind} ${user.name} refers to a ${kind}`)))
  }
  return found
}

/** @param why the reason to read these objects */
async function listed(
  client: KubeClient,
  kind: string,
  namespace: string | undefined,
  why: string,
): Promise<readonly Resource[]> {
  try {
    return (await client.list(typeOf(kind), { namespace })).map((object) => resourceOf({ ...object, kind }))
  } catch (error) {
    if (!(error instanceof KubeError) || error.status !== 403) throw error
    const what = `${kind}s${namespace === undefined ? '' : ` in namespace ${namespace}`}`
    throw new PenstockError(
      'PEN_KUBERNETES',
      `${why}, and you may not read ${what}, which the comparison needs. Request the ClusterRole penstock-view${namespace === undefined ? ', with a ClusterRoleBinding' : ''}. ${error.message}`,
      { cause: error },
    )
  }
}

/** Whether a source or sink of a Pipeline refers to an object of a kind, or to the one with this name. The spec may have any content. */
function refersTo({ content }: Resource, kind: string, name?: string): boolean {
  const spec = tableOf(content['spec'])
  const refs = ['sources', 'sinks'].flatMap((part) => listOf(spec[part])).map((entry) => tableOf(tableOf(entry)['ref']))
  return refs.some((ref) => ref['kind'] === kind && (name === undefined || ref['name'] === name))
}

/**
 * Sorts the keys of a configuration: the API server sorts those of untyped objects, and files keep the order of their
 * authors. A configuration without components is the same as none.
 */
export function comparableText(config: object | undefined): string {
  const isEmpty = Object.values(config ?? {}).every((part) => Object.keys(part ?? {}).length === 0)
  return isEmpty ? '' : stringify(config, { lineWidth: 0, sortMapEntries: true })
}
