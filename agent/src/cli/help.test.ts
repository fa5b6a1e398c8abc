// The help of every command in a terminal with 80 columns.

import { afterEach, expect, test, vi } from 'vitest'
import type { Flag } from '../command-line/flags.ts'
import { type Command, commands } from './commands.ts'
import * as completion from './completion.ts'

vi.setConfig({ testTimeout: 120_000 })
afterEach(() => vi.restoreAllMocks())

const called = Object.entries(commands)
  .filter(([, command]) => command.alias === undefined)
  .map(([name, { load }]) => ({ name, load }))

test.each([...called, { name: 'completion', load: async () => completion }])(
  'the help of $name describes its purpose, fits 80 columns, and has a sentence for each flag',
  async ({ name, load }) => {
    const { run, flags, flagTable = flags ?? {} }: Awaited<ReturnType<Command['load']>> = await load()
    const { isTTY } = process.stdout
    process.stdout.isTTY = false
    let text = ''
    vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
      text += chunk
      return true
    })
    try {
      expect(await run(['--help'])).toBe(0)
    } finally {
      process.stdout.isTTY = isTTY
    }
    expect(text).toMatch(/^Usage: penstock-agent .*\n(?: {7}.*\n)*\n[A-Z][^\n]{30}/)
    expect(text.startsWith(`Usage: penstock-agent ${name === 'run' ? '[run]' : name}`)).toBe(true)
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([])
    expect(text).not.toMatch(/\bVALUE\b/)
    const texts = Object.values<Flag>(flagTable).map(({ help }) => help)
    expect(texts.filter((help) => !/^[A-Z].*[.)]$/.test(help))).toEqual([])
  },
)
