#!/usr/bin/env -S node --conditions=source
// The `penstock` command: one sub-command a file in cli/. It works on resources; the agent's own command is `penstock-agent`.

import { keepCompiled } from '@penstock/agent/cli/compiled'
import { leaveMemoryOutOfDumps } from '@penstock/agent/cli/core-dump'

leaveMemoryOutOfDumps()
keepCompiled()
const { main } = await import('./cli/commands.ts')
process.exitCode = await main(process.argv.slice(2))
