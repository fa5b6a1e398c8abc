#!/usr/bin/env -S node --conditions=source
// Completes the arguments of `kubectl penstock`: kubectl runs it as `kubectl_complete-penstock` from the PATH.

import { start } from '@penstock/agent/node-version'

process.argv.splice(2, 0, '__complete')
await start('kubectl_complete-penstock', new URL('../src/main.ts', import.meta.url))
