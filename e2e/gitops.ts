// Evaluates an object's status by the published rules of GitOps tools: a port of kstatus (Flux, kubectl), and the Lua health check for Argo CD
// from the guide.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fengari from 'fengari'
import { root } from './command.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

export interface Watched {
  readonly metadata: { readonly generation?: number; readonly deletionTimestamp?: string }
  readonly spec?: { readonly suspend?: boolean }
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] }
}

/**
 * The rules of sigs.k8s.io/cli-utils/pkg/kstatus for unknown kinds: `checkGenericProperties`, and `Current` if these do not apply.
 */
export function kstatus(object: Watched): 'Current' | 'InProgress' | 'Failed' | 'Terminating' {
  if (object.metadata.deletionTimestamp !== undefined) return 'Terminating'
  const { observedGeneration, conditions = [] } = object.status ?? {}
  if (observedGeneration !== undefined && observedGeneration !== object.metadata.generation) return 'InProgress'
  for (const { type, status } of conditions) {
    if (type === 'Reconciling' && status === 'True') return 'InProgress'
    if (type === 'Stalled' && status === 'True') return 'Failed'
  }
  for (const { type, status } of conditions) {
    if (type === 'Ready' && (status === 'False' || status === 'Unknown')) return 'InProgress'
  }
  return 'Current'
}

/** The rule in the guide. */
export const guideRule = /```lua\n(.*?)```/s.exec(readFileSync(join(root, 'operator/guide/gitops.md'), 'utf8'))?.[1]

/** Runs the Lua rule, and returns status and message. */
export function argoHealth(object: Watched, rule = guideRule): { readonly status: string; readonly message: string } {
  if (rule === undefined) throw new Error('The guide has no Lua rule.')
  const { lua, lauxlib, lualib, to_luastring, to_jsstring } = fengari
  const state = lauxlib.luaL_newstate()
  lualib.luaL_openlibs(state)
  const program = `local obj = ${luaText(object)}\nlocal function check()\n${rule}\nend\nlocal hs = check()\nreturn hs.status, hs.message`
  const failed = lauxlib.luaL_dostring(state, to_luastring(program))
  const text = (index: number) => to_jsstring(lua.lua_tostring(state, index) ?? new Uint8Array())
  if (failed) throw new Error(`The Lua rule failed: ${text(-1)}`)
  return { status: text(-2), message: text(-1) }
}

/** A value as a Lua expression. As in Argo CD, missing members are nil. */
function luaText(value: unknown): string {
  if (value === null || value === undefined) return 'nil'
  if (typeof value === 'string')
    return `"${[...Buffer.from(value)].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')}"`
  if (Array.isArray(value)) return `{${value.map(luaText).join(', ')}}`
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, member]) => `[${luaText(key)}] = ${luaText(member)}`)
      .join(', ')}}`
  return String(value)
}
