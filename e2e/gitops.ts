// The judgement of GitOps tools on an object's status, by their published rules: kstatus (Flux, kubectl) ported, and the health check
// for Argo CD run as the Lua that the guide prints.

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
 * The rules of sigs.k8s.io/cli-utils/pkg/kstatus for kinds that it does not know: `checkGenericProperties`, and `Current` when
 * these say nothing.
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

/** The rule that the guide prints. */
export const guideRule = /```lua\n(.*?)```/s.exec(readFileSync(join(root, 'operator/guide/gitops.md'), 'utf8'))?.[1]

/** Status and message of the Lua rule. */
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

/** A value as a Lua expression; absent members stay nil, as in Argo CD. */
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
