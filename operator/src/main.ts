#!/usr/bin/env -S node --conditions=source
// The `penstock` command: one sub-command a file in cli/. It works on resources; the agent's own command is `penstock-agent`.

import { exitCodeOf, exitCodes } from '@penstock/agent/cli/exit-codes'
import { errorText, PenstockError } from '@penstock/agent/errors'
import { closest } from '@penstock/agent/schema/problems'

/** What a file of `cli/` gives. `operator` and `webhook` print their many flags themselves. */
interface Command {
  readonly usage?: string
  run(argv: string[]): Promise<number>
}

const commands: Readonly<Record<string, { readonly about: string; readonly load: () => Promise<Command> }>> = {
  cleanup: { about: 'end what must end before an installation is removed', load: () => import('./cli/cleanup.ts') },
  convert: { about: 'make a Pipeline of an agent configuration', load: () => import('./cli/convert.ts') },
  diff: { about: 'what applying resources would change, beside the cluster', load: () => import('./cli/diff.ts') },
  explain: {
    about: 'print the page of a component, function, metric or error',
    load: () => import('./cli/explain.ts'),
  },
  lint: { about: 'check resources: shape, references, options, programs', load: () => import('./cli/lint.ts') },
  operator: { about: 'reconcile the resources of a cluster (in its image)', load: () => import('./cli/operator.ts') },
  render: { about: 'print the agent configuration of resources', load: () => import('./cli/render.ts') },
  rollout: {
    about: 'show, pause, resume, undo or retry the rollout of a revision',
    load: () => import('./cli/rollout.ts'),
  },
  run: { about: 'run resources here, with sample pods', load: () => import('./cli/run.ts') },
  selftest: {
    about: 'apply a Pipeline that goes nowhere and wait until it is ready',
    load: () => import('./cli/selftest.ts'),
  },
  status: { about: 'show Pipelines of a cluster as trees', load: () => import('./cli/status.ts') },
  'support-bundle': {
    about: 'write what helps to find a fault into an archive',
    load: () => import('./cli/support-bundle.ts'),
  },
  tap: { about: 'show a sample of the events of a Pipeline', load: () => import('./cli/tap.ts') },
  test: { about: 'run the tests of Pipelines', load: () => import('./cli/test.ts') },
  top: { about: 'show what Pipelines do now', load: () => import('./cli/top.ts') },
  webhook: { about: 'answer the admission webhooks, apart from the operator', load: () => import('./cli/webhook.ts') },
  why: { about: 'tell which Pipelines read the logs of a pod, and why', load: () => import('./cli/why.ts') },
}

const usage = `Usage: penstock COMMAND [FLAGS]\n\n${Object.entries(commands)
  .map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`)
  .join('\n')}

\`penstock COMMAND --help\` tells the flags of a command.\n`

async function main([name, ...argv]: string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h') {
    console.log(usage)
    return name === undefined ? 64 : 0
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) {
    const meant = closest(name, Object.keys(commands))
    console.error(
      `There is no command \`${name}\`.${meant === undefined ? '' : ` Did you mean \`${meant}\`?`}\n\n${usage}`,
    )
    return 64
  }
  try {
    const { usage: its, run } = await command.load()
    if (its !== undefined && argv.some((word) => word === '--help' || word === '-h')) {
      console.log(its)
      return 0
    }
    return await run(argv)
  } catch (error) {
    const { told, code } = endOf(error)
    console.error(told)
    return code
  }
}

/** What a user is told of an error that ended a command, and the exit code. A fault of Penstock itself is told with its place. */
function endOf(error: unknown): { told: unknown; code: number } {
  if (error instanceof PenstockError && error.code !== 'PEN_INTERNAL') {
    return { told: errorText(error), code: exitCodeOf(error) }
  }
  const { name, code, syscall } = (error ?? {}) as { name?: string; code?: unknown; syscall?: string }
  if (String(code).startsWith('ERR_PARSE_ARGS')) {
    return { told: `${errorText(error)}\nThe flags: \`penstock ${process.argv[2]} --help\`.`, code: exitCodes.usage }
  }
  // What the API server, or the system, refuses is told in its own words.
  if (name === 'KubeError') return { told: errorText(error), code: exitCodes.unavailable }
  if (syscall !== undefined) return { told: errorText(error), code: exitCodes.io }
  return { told: error, code: exitCodes.internal }
}

process.exitCode = await main(process.argv.slice(2))
