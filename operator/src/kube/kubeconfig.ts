// The reader of kubeconfigs of @kubernetes/client-node, without what it imports for clients that are not used here.

import { registerHooks } from 'node:module'

const reader = '/@kubernetes/client-node/dist/config.js'
const unused: readonly string[] = ['./gen/index.js', 'undici']

/** Whether something is imported by the reader for what it is not asked for; `unused.ts` takes its place. */
export function isUnused(specifier: string, importer: string | undefined): boolean {
  return unused.includes(specifier) && importer?.endsWith(reader) === true
}

/**
 * Loaded when the API server is spoken to, and not by commands that only compile. It imports everything that is generated of
 * the API, 750 files and 46 MB at every start, and an HTTP client of 1.2 MB, for four names that it does not use here. The image's
 * pack has left them out already.
 */
export async function kubeConfig() {
  const ending = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      isUnused(specifier, context.parentURL)
        ? next(new URL(`./unused${ending}`, import.meta.url).href, context)
        : next(specifier, context),
  })
  try {
    const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js')
    return new KubeConfig()
  } finally {
    hooks.deregister()
  }
}
