#!/usr/bin/env -S node --conditions=source
// The command `penstock` of a checkout, and `kubectl penstock` where it is linked as `kubectl-penstock`.

import { start } from '@penstock/agent/node-version'

await start('penstock', new URL('../src/main.ts', import.meta.url))
