#!/usr/bin/env -S node --conditions=source
// The `penstock` command: one sub-command a file in cli/. It works on resources; the agent's own command is `penstock-agent`.

import { main } from './cli/commands.ts'

process.exitCode = await main(process.argv.slice(2))
