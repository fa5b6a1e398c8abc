#!/usr/bin/env -S node --conditions=source
// The command `penstock-agent` of a checkout.

import { start } from './node-version.js'

await start('penstock-agent', new URL('../src/main.ts', import.meta.url))
