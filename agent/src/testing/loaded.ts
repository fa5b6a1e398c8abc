// Loaded into a process before its program (`--import`). When the process ends, writes the list of loaded modules to the file that
// PENSTOCK_LOADED_FILE names. Lists modules of files by URL, and modules of Node by name.

import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const addresses = new Set<string>()
registerHooks({
  load(url, context, next) {
    addresses.add(url)
    return next(url, context)
  },
})

/** Node's internal list, the only one that includes modules loaded by its own modules. */
function builtins(): string[] {
  const list = (process as unknown as { readonly moduleLoadList: readonly string[] }).moduleLoadList
  return list.filter((entry) => entry.startsWith('NativeModule ')).map((entry) => entry.slice('NativeModule '.length))
}

process.on('exit', () => {
  const file = process.env['PENSTOCK_LOADED_FILE']
  if (file !== undefined) writeFileSync(file, JSON.stringify({ addresses: [...addresses], builtins: builtins() }))
})
