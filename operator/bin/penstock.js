#!/usr/bin/env -S node --conditions=source
// The command `penstock` of a checkout; linked as `kubectl-penstock`, it is the command `kubectl penstock`.

import { start } from '@penstock/agent/node-version'

await start('penstock', new URL('../src/main.ts', import.meta.url))
