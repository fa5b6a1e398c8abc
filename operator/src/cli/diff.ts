// `penstock diff -f PATH`: the changes that applying resources would make for the agents. It compiles the given resources and those in
// the cluster, and compares the configurations. The exit code is 1 if they differ, as with diff.

import type { Flags } from '@penstock/agent/program'
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import { stringify } from 'yaml'
import { kindOf } from '../api/kinds.ts'
import { compileResources } from '../compile/config.ts'
import { loadResources, type Resource, resourceOf } from '../compile/resources.ts'
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
  // Shared objects that the files refer to and do not hold are those of the cluster, on both sides.
  const named = new Set(files.map((resource) => `${resource.kind} ${resource.namespace}/${resource.name}`))
  const shared: Resource[] = []
  const namespaces = new Set(files.map((resource) => resource.namespace).filter((each) => each !== ''))
  for (const kind of ['ClusterSource', 'ClusterSink', 'Source', 'Sink']) {
    const type = kindOf(kind)
    if (type === undefined) continue
    for (const each of type.namespaced ? namespaces : [undefined]) {
      for (const object of await client.list(type, { namespace: each })) {
        const resource = resourceOf(object)
        if (!named.has(`${kind} ${resource.namespace}/${resource.name}`)) shared.push(resource)
      }
    }
  }
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

/** A configuration with sorted keys: the API server sorts those of open objects, files have them as people wrote them. */
export function comparableText(config: object | undefined): string {
  return config === undefined ? '' : stringify(config, { lineWidth: 0, sortMapEntries: true })
}
