// The commands of `penstock`, how each is found, and how an error that ends one is reported.

import { errorText, exitCodeOf, exitCodes, PenstockError } from '@penstock/agent/errors'
import { commandNamed, faultText, firstWords, helpText, readColor, version } from '@penstock/agent/program'
import type { ListedCommand } from './completion.ts'
import { unreachableHelp } from './unreachable.ts'

export const commands: Readonly<Record<string, ListedCommand>> = {
  init: { group: 'files', about: 'Write a first Pipeline with comments.', load: () => import('./init.ts') },
  lint: { group: 'files', about: 'Check resources without a cluster.', load: () => import('./lint.ts') },
  test: { group: 'files', about: 'Run the tests in Pipelines.', load: () => import('./test.ts') },
  run: {
    group: 'files',
    about: 'Run resources on this machine, with sample pods or files.',
    load: () => import('./run.ts'),
  },
  render: { group: 'files', about: 'Print the agent configuration of resources.', load: () => import('./render.ts') },
  convert: {
    group: 'files',
    about: 'Convert the configuration of another agent to a Pipeline.',
    load: () => import('./convert.ts'),
  },
  list: { group: 'files', about: 'List the types of sources, transforms and sinks.', load: () => import('./list.ts') },
  explain: {
    group: 'files',
    about: 'Describe a kind, field, component, function, metric or error.',
    load: () => import('./explain.ts'),
  },
  status: {
    group: 'cluster',
    about: 'Show the state of Pipelines, their components and agents.',
    load: () => import('./status.ts'),
  },
  why: {
    group: 'cluster',
    about: 'Show which Pipelines read the logs of a pod, and why.',
    load: () => import('./why.ts'),
  },
  tap: { group: 'cluster', about: 'Show live events of a Pipeline.', load: () => import('./tap.ts') },
  top: { group: 'cluster', about: 'Show live figures of Pipelines.', load: () => import('./top.ts') },
  diff: {
    group: 'cluster',
    about: 'Show what applying resources would change for the agents.',
    load: () => import('./diff.ts'),
  },
  rollout: {
    group: 'cluster',
    about: 'Show, pause, resume, undo or retry a rollout.',
    load: () => import('./rollout.ts'),
  },
  'support-bundle': {
    group: 'cluster',
    about: 'Collect diagnostic data in an archive, without secrets.',
    load: () => import('./support-bundle.ts'),
  },
  selftest: {
    group: 'installation',
    about: 'Test an installation with a Pipeline that delivers nowhere.',
    load: () => import('./selftest.ts'),
  },
  migrate: {
    group: 'installation',
    about: 'Rewrite stored objects or files in the newest version.',
    load: () => import('./migrate.ts'),
  },
  cleanup: {
    group: 'installation',
    about: 'Prepare the removal of an installation.',
    load: () => import('./cleanup.ts'),
  },
  completion: {
    group: 'program',
    about: 'Print a completion script for bash, zsh or fish.',
    load: async () => (await import('./completion.ts')).completionOf(commands),
  },
  version: { group: 'program', about: 'Print the version.', load: () => import('./version.ts') },
  operator: { group: 'program', about: 'Run the operator (in its image).', load: () => import('./operator.ts') },
  webhook: {
    group: 'program',
    about: "Serve the admission webhooks (used in the operator's image).",
    load: () => import('./webhook.ts'),
  },
}

const groups: Readonly<Record<ListedCommand['group'], string>> = {
  files: 'Write, check and try resources, without a cluster',
  cluster: 'Watch and control what runs in a cluster',
  installation: 'Check, upgrade and remove an installation',
  program: 'The program itself',
}

const lists = Object.entries(groups).map(([group, heading]) => {
  const own = Object.entries(commands).filter(([, command]) => command.group === group)
  return [`${heading}:`, ...own.map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`)].join('\n')
})

const usage = `Usage: penstock COMMAND [FLAGS]

${lists.join('\n\n')}

Run penstock COMMAND --help for details, and penstock --version for the version.

Every command also takes:
  --color auto|always|never  Whether to colour. auto: on a terminal, unless NO_COLOR is set or TERM is dumb.
  --debug                    Print the stack of an error.`

/** These commands write logs in JSON, or let an agent write. */
export const ownStreams: ReadonlySet<string> = new Set(['operator', 'webhook', 'run'])

/** Flags that may also come before the name of a command: those of every command, and those that kubectl accepts before a plugin's. */
const mayLead: ReadonlySet<string> = new Set([
  '--color',
  '--kubeconfig',
  '--context',
  '--as',
  '--as-group',
  '--namespace',
  '-n',
])

/** The arguments with the command first: `-n shop status` becomes `status -n shop`. */
function commandFirst(words: readonly string[]): readonly string[] {
  let at = 0
  for (let word = words[0]; word !== undefined && mayLead.has(word.split('=')[0] ?? ''); word = words[at])
    at += word.includes('=') ? 1 : 2
  const command = words[at]
  return at === 0 || command === undefined ? words : [command, ...words.slice(0, at), ...words.slice(at + 1)]
}

/** Runs a command; returns the exit code. */
export async function main(given: readonly string[]): Promise<number> {
  if (given[0] === '__complete') {
    const { complete } = await import('./completion.ts')
    return complete(commandFirst(given.slice(1, -1)), given.at(-1) ?? '', commands)
  }
  const { isDebug, asks, words } = firstWords(given)
  const [name, ...argv] = commandFirst(words)
  if (name === undefined || asks === 'help' || (name === 'help' && argv.length === 0)) {
    process.stdout.write(helpText(`${usage}\n`))
    return name === undefined ? 64 : 0
  }
  if (asks === 'version') {
    console.log(`penstock ${version}`)
    return 0
  }
  if (name === 'help') return await main([...argv, '--help'])
  let command: ListedCommand
  try {
    command = commandNamed('penstock', commands, name, whatToDoWith)
  } catch (error) {
    console.error(errorText(error))
    return exitCodeOf(error)
  }
  try {
    const { usage: its, options, run } = await command.load()
    const plain = readColor(argv)
    if (argv.some((word) => word === '--help' || word === '-h')) {
      process.stdout.write(helpText(its))
      return 0
    }
    return await run([...(options['color'] === undefined ? plain : argv)])
  } catch (error) {
    const { report, code } = endOf(name, error)
    console.error(report)
    if (isDebug && error instanceof Error) console.error(error.stack)
    return code
  }
}

const whatToDoWith = (path: string) => `\`penstock lint ${path}\` checks it, and \`penstock run ${path}\` runs it here.`

/** The remedy for a refusal of the API server; `object` names the object that it is about. */
function refusalHelp(status: number | undefined, object: string | undefined): readonly string[] {
  if (status === 401)
    return ['They may have expired, or the context may be another one: `kubectl auth whoami` shows your identity.']
  if (status === 403) {
    return [
      'In a namespace, the ClusterRole `view` allows reading, and `edit` changing, with the kinds of Penstock; resources of the whole cluster are for its administrators. One of them grants it: kubectl create rolebinding NAME -n NAMESPACE --clusterrole=view --user=YOU',
    ]
  }
  // The whole kind is missing, not just an object: the API server does not serve its path.
  if (status === 404 && object === undefined)
    return ['Is Penstock installed in this cluster? Check with `kubectl get crds pipelines.penstock.dev`.']
  return []
}

/** The refusal of a request in the words of the API server: it names the user, the verb and the resource. */
function refusalText({
  status,
  apiMessage,
  message,
}: {
  status?: number
  apiMessage?: string
  message: string
}): string {
  if (status === 401) return 'The API server does not accept your credentials.'
  return status === 403 && apiMessage !== undefined ? `The API server refuses this: ${apiMessage}` : message
}

/** The report of an error that ended a command, and the exit code. A fault of Penstock itself is reported with its place. */
function endOf(command: string, error: unknown): { report: string; code: number } {
  if (error instanceof PenstockError && error.code !== 'PEN_INTERNAL') {
    const help = error.code === 'PEN_USAGE' ? ` See \`penstock ${command} --help\`.` : ''
    // The operator has answered: the object does not exist, as for commands that only ask the API server.
    const isMissing = error.code === 'PEN_UNAVAILABLE' && error.status === 404
    return { report: `${errorText(error)}${help}`, code: isMissing ? 1 : exitCodeOf(error) }
  }
  const { name, code, syscall } = (error ?? {}) as { name?: string; code?: unknown; syscall?: string }
  if (name === 'KubeError') {
    const failed = error as {
      status?: number
      object?: string
      unreachable?: string
      apiMessage?: string
      message: string
    }
    const { status, object, unreachable } = failed
    if (unreachable !== undefined) return { report: `${unreachable}.\n${unreachableHelp}`, code: exitCodes.unavailable }
    return {
      report: [refusalText(failed), ...refusalHelp(status, object)].join('\n'),
      code: exitCodes.unavailable,
    }
  }
  if (
    name === 'TimeoutError' ||
    syscall === 'connect' ||
    syscall === 'getaddrinfo' ||
    /CERT|SELF_SIGNED|TLS|SSL/.test(String(code))
  ) {
    return {
      report: `The API server cannot be reached: ${errorText(error)}.\n${unreachableHelp}`,
      code: exitCodes.unavailable,
    }
  }
  if (syscall !== undefined) return { report: errorText(error), code: exitCodes.io }
  return { report: faultText(error), code: exitCodes.internal }
}
