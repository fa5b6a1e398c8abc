// The credentials of a request: the option `auth`, or the user information in the address.

import type { OptionProblem } from '../component.ts'
import { PenstockError } from '../errors.ts'

export type StaticAuth =
  | { readonly strategy: 'basic'; readonly user: string; readonly password: string }
  | { readonly strategy: 'bearer'; readonly token: string }

/** The message when an address and the options both name credentials. */
const twoCredentials = 'Two authorization credentials was provided.'

/** Removes the user information from a URL, and returns it as an authorization header; undefined if there is none. */
function takeUserInfo(url: URL): string | undefined {
  if (url.username === '' && url.password === '') return undefined
  const header = basic(unescaped(url.username), unescaped(url.password))
  url.username = ''
  url.password = ''
  return header
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // keep a stray percent sign literally
  }
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`
}

/**
 * Returns the `Authorization` header for requests to a URL, and removes the user information from the URL. Throws a PenstockError if
 * both the URL and the options contain credentials.
 */
export function authorization(
  url: URL,
  auth: StaticAuth | { readonly strategy: 'aws' } | undefined,
): string | undefined {
  const own = takeUserInfo(url)
  if (own !== undefined && auth !== undefined) throw new PenstockError('PEN_AUTH', twoCredentials)
  if (auth === undefined) return own
  switch (auth.strategy) {
    case 'basic':
      return basic(auth.user, auth.password)
    case 'bearer':
      return `Bearer ${auth.token}`
    case 'aws':
      return undefined
  }
}

/** Problems with an address and `auth` together, for the check of a component. */
export function authProblems(path: string, address: string | undefined, auth: unknown): OptionProblem[] {
  if (address === undefined || auth === undefined) return []
  const url = URL.parse(address)
  if (url === null || (url.username === '' && url.password === '')) return []
  return [
    {
      path,
      message: twoCredentials,
      help: 'Remove either the user information from the address or the option `auth`.',
    },
  ]
}
