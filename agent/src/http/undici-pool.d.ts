/** The part of undici that the HTTP client needs. The library only has types for the whole package. */
declare module 'undici/lib/dispatcher/pool.js' {
  import type { Pool } from 'undici'

  const pool: typeof Pool
  export default pool
}
