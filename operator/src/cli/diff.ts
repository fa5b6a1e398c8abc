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
import { connect, connectionOptions, namespaceOption } from './cluster.ts'
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
  // Shared objects that the files refer to but do not contain come from the cluster, on both sides.
  const named = new Set(files.map((resource) => `${resource.kind} ${resource.namespace}/${resource.name}`))
  const shared = (await sharedResources(client, [...files, ...live])).filter(
    (resource) => !named.has(`${resource.kind} ${resource.namespace}/${resource.name}`),
  )
  const compiling = { ownMachine: false, redacted: true }
  const after = compileResources([...loaded.resources, ...shared], compiling)
  if (!printProblems([...loaded.problems, ...after.problems.filter((problem) => problem.file !== undefined)])) return 78
  const before = live.length === 0 ? undefined : compileResources([...live, ...shared], compiling)
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

/** The shared objects of the referenced kinds: reading other kinds would need rights unnecessarily. */
async function sharedResources(client: KubeClient, resources: readonly Resource[]): Promise<Resource[]> {
  const namespaces = new Set(resources.map((resource) => resource.namespace).filter((each) => each !== ''))
  const found: Resource[] = []
  for (const kind of ['ClusterSource', 'ClusterSink', 'Source', 'Sink']) {
    const type = kindOf(kind)
    const user = resources.find((resource) => refersTo(resource, kind))
    if (type === undefined || user === undefined) continue
    for (const namespace of type.namespaced ? namespaces : [undefined]) {
      try {
        for (const object of await client.list(type, { namespace })) found.push(resourceOf(object))
      } catch (error) {
        if (!(error instanceof KubeError) || error.status !== 403) throw error
        const what = `${kind}s${namespace === undefined ? '' : ` in namespace ${namespace}`}`
        throw new PenstockError(
          'PEN_KUBERNETES',
          `${user.kind} ${user.name} refers to a ${kind}, and you may not read ${what}, which the comparison needs. Request the ClusterRole penstock-view${namespace === undefined ? ', with a ClusterRoleBinding' : ''}. ${error.message}`,
          { cause: error },
        )
      }
    }
  }
  return found
}

/** Whether a source or sink of a Pipeline refers to an object of a kind. The spec may have any content. */
function refersTo({ content }: Resource, kind: string): boolean {
  const spec = tableOf(content['spec'])
  return ['sources', 'sinks'].some((name) =>
    listOf(spec[name]).some((entry) => tableOf(tableOf(entry)['ref'])['kind'] === kind),
  )
}

/**
 * Sorts the keys of a configuration: the API server sorts those of untyped objects, and files keep the order of their
 * authors.
 */
export function comparableText(config: object | undefined): string {
  return config === undefined ? '' : stringify(config, { lineWidth: 0, sortMapEntries: true })
}
