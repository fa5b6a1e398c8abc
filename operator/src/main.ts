#!/usr/bin/env -S node --conditions=source
// The `penstock` command: one sub-command a file in cli/. It works on resources; the agent's own command is `penstock-agent`.

import { keepCompiled } from '@penstock/agent/cli/compiled'
import { leaveMemoryOutOfDumps } from '@penstock/agent/cli/core-dump'
import { printOnlyPrintable } from '@penstock/agent/printable'

leaveMemoryOutOfDumps()
keepCompiled()
const { main, ownStreams } = await import('./cli/commands.ts')
if (!ownStreams.has(process.argv[2] ?? '')) printOnlyPrintable()
process.exitCode = await main(process.argv.slice(2))
