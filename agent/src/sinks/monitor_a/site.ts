// The address of monitoring service A: each account belongs to a site, and each API of the site has its own host.

import { PenstockError } from '../../errors.ts'
import { type Identity, noIdentity } from '../../http/identity.ts'
import { joinPath } from '../../http/sink.ts'
import { address, hostPart, oneOf, optional, secret } from '../../schema/options.ts'

const defaultSite = 'datadoghq.com'

/** Domains of the service. If an endpoint is below one of them, its API host is known. */
const sites = ['datadoghq.com', 'datadoghq.eu', 'ddog-gov.com']

/** Account options shared by all sinks of the service. */
export const accountOptions = {
  default_api_key: optional(
    secret('API key. Required, unless the environment variable `DD_API_KEY` is set.', {
      aliases: ['api_key'],
      means: { explicit: 'key' },
    }),
  ),
  site: optional(
    address(
      `Site of the account, ignored if \`endpoint\` or \`region\` is set. If not given, the environment variable \`DD_SITE\`, else \`${defaultSite}\`.`,
      hostPart,
    ),
  ),
  region: optional(oneOf(['us', 'eu'], 'Region of the account, ignored if `endpoint` is set.')),
}

/** The site from the options, else from the environment. */
export function siteOf(
  options: { readonly site?: string | undefined; readonly region?: 'us' | 'eu' | undefined },
  env: Readonly<Record<string, string | undefined>>,
): string {
  switch (options.region) {
    case 'eu':
      return 'datadoghq.eu'
    case 'us':
      return defaultSite
    case undefined:
      return options.site ?? env['DD_SITE'] ?? defaultSite
  }
}

/** Site and key from the options, else from the agent's environment if the component may use it. */
export function accountOf(
  options: Parameters<typeof siteOf>[0] & { readonly default_api_key?: string | undefined },
  identity: Identity | undefined,
): { readonly site: string; readonly apiKey: string } {
  const site = siteOf(options, identity?.env ?? {})
  const apiKey = options.default_api_key ?? identity?.env['DD_API_KEY']
  if (apiKey !== undefined) return { site, apiKey }
  const why = identity === undefined ? noIdentity : 'The environment has no `DD_API_KEY` either.'
  const message = `\`default_api_key\` is required. ${why}`
  throw new PenstockError('PEN_AUTH', message, { fact: message })
}

/** The address of an API path. A custom endpoint outside the service's domains serves the API itself. */
export function apiAddress(endpoint: string | undefined, site: string, path: string): string {
  if (endpoint === undefined) return `https://api.${site}${path}`
  const address = URL.parse(endpoint)
  const host = address?.hostname ?? ''
  const domain = sites.find((candidate) => host === candidate || host.endsWith(`.${candidate}`))
  if (domain === undefined) return joinPath(address?.origin ?? endpoint, path)
  // A site may be a sub-domain, such as us3 or ap1; the preceding labels name the intake.
  const label = /(?:^|\.)((?:us|ap|eu)\d+)$/.exec(host.slice(0, -domain.length - 1))?.[1]
  return `https://api.${label === undefined ? '' : `${label}.`}${domain}${path}`
}
