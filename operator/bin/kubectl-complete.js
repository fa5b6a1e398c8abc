#!/usr/bin/env -S node --conditions=source
// What kubectl runs for the words behind `kubectl penstock` when somebody types Tab, as `kubectl_complete-penstock` of the PATH.

import { start } from '@penstock/agent/node-version'

process.argv.splice(2, 0, '__complete')
await start('kubectl_complete-penstock', new URL('../src/main.ts', import.meta.url))
