// Loaded into a process before its program (`--import`): when the process ends, it writes the list of loaded modules to the file that
// PENSTOCK_LOADED_FILE names. Modules of files are listed by their address, those of Node by their name.

import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const addresses = new Set<string>()
registerHooks({
  load(url, context, next) {
    addresses.add(url)
    return next(url, context)
  },
})

/** Node's own list, which has what one of its modules loads too. It says it in no other way. */
function builtins(): string[] {
  const list = (process as unknown as { readonly moduleLoadList: readonly string[] }).moduleLoadList
  return list.filter((entry) => entry.startsWith('NativeModule ')).map((entry) => entry.slice('NativeModule '.length))
}

process.on('exit', () => {
  const file = process.env['PENSTOCK_LOADED_FILE']
  if (file !== undefined) writeFileSync(file, JSON.stringify({ addresses: [...addresses], builtins: builtins() }))
})
